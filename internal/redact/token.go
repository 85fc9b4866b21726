package redact

import (
	"bytes"
	"iter"
	"regexp"

	"retry-worker/internal/text"
)

// token is a word, digits, blanks, a sign or a mark. It ends where the next one begins.
type token struct {
	at   int32 // in the characters
	kind kind  // of a mark, or of what a word labels
	path bool  // stands in a URL's path
}

// look is what a character is to the tokens.
type look uint8

const (
	isSign look = iota
	isLetter
	isDigit
	isBlank
	isPlaceholder
)

var looks = func() (table [256]look) {
	for c := range table {
		switch c := byte(c); {
		case 'a' <= c|0x20 && c|0x20 <= 'z', c == text.Small, c == text.Letter:
			table[c] = isLetter
		case '0' <= c && c <= '9':
			table[c] = isDigit
		case c == ' ':
			table[c] = isBlank
		case isMark(c):
			table[c] = isPlaceholder
		}
	}
	return table
}()

func isSmall(c byte) bool { return 'a' <= c && c <= 'z' || c == text.Small }
func isAlnum(c byte) bool { return looks[c] == isLetter || looks[c] == isDigit }
func lower(c byte) byte   { return c | 0x20 }

func (r *reader) char(i int) byte {
	if i < 0 || i >= len(r.Chars) {
		return 0
	}
	return r.Chars[i]
}

// ahead returns the characters from i on, at most n.
func (r *reader) ahead(i, n int) []byte { return r.Chars[i:min(len(r.Chars), i+n)] }

// tokensAt returns the classes of the tokens from i on, at most maxLead, and match how many of them form matches.
func (r *reader) tokensAt(i int) []class {
	return r.classes[min(i, len(r.classes)):min(len(r.classes), i+maxLead)]
}
func (r *reader) match(form *regexp.Regexp, i int) int { return len(form.Find(r.tokensAt(i))) }

// class returns the class of the token i; 0 outside the text.
func (r *reader) class(i int) class {
	if i < 0 || i >= len(r.classes) {
		return 0
	}
	return r.classes[i]
}

func (r *reader) start(i int) int { return int(r.tokens[min(i, len(r.tokens)-1)].at) }
func (r *reader) end(i int) int   { return r.start(i + 1) }
func (r *reader) size(i int) int  { return r.end(i) - r.start(i) }

// isWord reports whether the token i is a word, and isRead whether it is a word, a number or a mark.
func (r *reader) isWord(i int) bool { return r.class(i) > '6' && isAlnum(r.class(i)) }
func (r *reader) isRead(i int) bool { return isAlnum(r.class(i)) }

// before returns the word, number or mark before the token i; -1 for none.
func (r *reader) before(i int) int {
	for i--; i >= 0 && !r.isRead(i); i-- {
	}
	return i
}

// isBehind reports whether a sign of set stands between the token i and the word, number or mark before it.
func (r *reader) isBehind(i int, set string) bool {
	return bytes.ContainsAny(r.classes[r.before(i)+1:i], set)
}

// run returns the end of the characters at i that have the look l.
func (r *reader) run(i int, l look) int {
	for i < len(r.Chars) && looks[r.Chars[i]] == l {
		i++
	}
	return i
}

// tokenise splits the characters into tokens. What readSigns found is a mark already.
func (r *reader) tokenise() {
	r.tokens, r.classes, r.hostEnd, r.pathEnd, r.dateEnd = r.tokens[:0], r.classes[:0], 0, 0, 0
	r.edits = append(r.edits, edit{start: len(r.Chars)})
	told := r.edits
	for i := 0; i < len(r.Chars); {
		if next := told[0]; i < next.start {
			i = min(r.tokenAt(i), next.start)
		} else {
			i, told = r.add(i, next.end, markClasses[next.kind], next.kind), told[1:]
		}
	}
	r.tokens = append(r.tokens, token{at: int32(len(r.Chars))})
	r.edits = r.edits[:len(r.edits)-1]
}

// add adds a token and returns where it ends.
func (r *reader) add(from, to int, c class, k kind) int {
	r.tokens = append(r.tokens, token{int32(from), k, from < r.pathEnd})
	r.classes = append(r.classes, c)
	return to
}

// tokenAt adds the token or the words at i, and returns where they end.
func (r *reader) tokenAt(i int) int {
	if i < r.hostEnd {
		return r.add(i, r.hostEnd, hosted, none)
	}
	c := r.Chars[i]
	if isAlnum(c) && i >= r.dateEnd {
		if end := r.identifierEnd(i); end > 0 {
			return r.add(i, end, fixed, none)
		}
	}
	switch looks[c] {
	case isBlank:
		end := r.run(i, isBlank)
		if end-i > maxGap {
			return r.add(i, end, wide, none)
		}
		return r.add(i, end, ' ', none)
	case isLetter:
		return r.wordsAt(i)
	case isDigit:
		end := r.run(i, isDigit)
		if i >= r.dateEnd && is(r.char(end), "-/.:") && end-i != 3 && looks[r.char(end+1)] == isDigit {
			r.dateEnd = r.instantEnd(i)
		}
		if i < r.dateEnd {
			return r.add(i, end, date, none)
		}
		return r.add(i, end, number, none)
	case isPlaceholder:
		k := kind(c & 0xf)
		return r.add(i, i+1, markClasses[k], k)
	}
	return r.signAt(i)
}

// wordsAt adds the words at i, and returns where their letters end. An identifier that the lexicon does not have is
// split into its words: numero|Carteira, CPF|Beneficiario.
func (r *reader) wordsAt(i int) int {
	for end := r.run(i, isLetter); i < end; {
		e, to := r.wordAt(i, end)
		next, isCapital := r.char(to), !isSmall(r.Chars[i])
		switch {
		case (r.Chars[i] == 'N' || r.Chars[i] == 'b') && to == i+1 && next == '\'': // SQL's N'Ana', Python's b'Ana'
			e.class, e.kind, to = '\'', none, to+1
		case to == i+1 && isCapital && next == '\'' && !isSmall(r.char(to+1)) && looks[r.char(to+1)] == isLetter:
			e = entry{class: 'U'} // O'Hara
		case e.class == claim && next == '-':
			return r.add(i, r.keptEnd(to, claimRest), fixed, none)
		case to == i+1 && next == '.' && (isCapital || e.class == unknown):
			e.class = initial // Maria A. Souza
		case to == i+1 && isCapital && next == ' ' && isSmall(r.char(to+1)) && r.class(len(r.classes)-1) == ' ' &&
			is(r.class(len(r.classes)-2), capitals):
			e.class = 'i' // an initial, if a name goes on so: JANE A not found
		case e.class == unknown && isCapital && to-i <= maxShort && isSmall(r.char(to-1)) && r.has(to, ". ") &&
			(isMark(r.char(to+2)) || looks[r.char(to+2)] == isLetter && !isSmall(r.char(to+2))):
			e.class = article // a title: Ms. Ana
		case is(e.class, lowered) && (is(next, "_@=") || next == ':' && !isCapital):
			e.class = keyed
		case is(e.class, lowered) && isCapital:
			e.class &^= 0x20
		}
		i = r.add(i, to, e.class, e.kind)
	}
	return i
}

// sign is a line of signs.txt, which explains its parts.
type sign struct {
	before byte
	behind *regexp.Regexp
	begins *set // the characters that behind may begin with
	class  class
}

// signs holds the lines of signs.txt by their sign.
var signs = func() (table [256][]sign) {
	for part := range lines("signs.txt", 4) {
		c, behind, as := part[0][0], regular(part[2]), part[3][0]
		if part[3] == "tag" {
			as = endTag
		}
		table[c] = append(table[c], sign{part[1][0], behind, beginsOf(behind), as})
	}
	return table
}()

// signAt adds the sign at i, and returns where it ends.
func (r *reader) signAt(i int) int {
	c, before, next := r.Chars[i], r.char(i-1), r.char(i+1)
	for k := range signs[c] {
		s := &signs[c][k]
		if s.before == 'a' && looks[before] != isLetter || s.before == '=' && before != '=' || !s.begins[next] {
			continue
		}
		if m := s.behind.Find(r.ahead(i+1, maxNoted)); m != nil && !(s.class == '!' && r.abbreviates(i)) {
			return r.add(i, i+1+len(bytes.TrimRight(m, " =\n")), s.class, none)
		}
	}
	switch {
	case c == ':' && r.has(i, "://"):
		if i >= r.hostEnd {
			r.hostEnd = r.authorityEnd(i + 3)
		}
		if r.hostEnd >= r.pathEnd {
			r.pathEnd = r.urlEnd(r.hostEnd)
		}
		return r.add(i, i+3, url, none)
	case c < ' ' && c != '\n' || c >= 0x80:
		c = '^'
	}
	return r.add(i, i+1, c, none)
}

const maxShort = 3 // letters of an abbreviation, known or not: n., tel., Sra.

// abbreviates reports whether a full stop at i is an abbreviation's.
func (r *reader) abbreviates(i int) bool {
	last := len(r.classes) - 1
	if r.class(last) == '`' && r.char(i-1) == ')' {
		last--
	}
	if last < 0 || looks[r.Chars[r.tokens[last].at]] != isLetter {
		return false
	}
	size := r.run(int(r.tokens[last].at), isLetter) - int(r.tokens[last].at)
	return size <= maxShort || size <= maxShort+2 && is(r.classes[last], "QPXTKL78")
}

// lookup returns the entry of the first word of the letters at i, and where the word ends.
func (r *reader) lookup(i int) (entry, int) { return r.wordAt(i, r.run(i, isLetter)) }

// words yields the words from start to end, and where each stands.
func (r *reader) words(start, end int) iter.Seq2[entry, edit] {
	return func(yield func(entry, edit) bool) {
		for i := start; i < end; i++ {
			if looks[r.Chars[i]] == isLetter {
				e, to := r.lookup(i)
				if !yield(e, edit{start: i, end: to}) {
					return
				}
				i = to - 1
			}
		}
	}
}

// wordAt returns the entry and the end of the word at i: all letters up to end if the lexicon has them, else those
// before the next capital that begins a word: nome|Paciente, CPF|Paciente.
func (r *reader) wordAt(i, end int) (entry, int) {
	e := r.entry(i, end)
	for j := i + 1; e.class == unknown && j < end; j++ {
		if !isSmall(r.Chars[j]) && (isSmall(r.Chars[j-1]) || j > i+1 && j+1 < end && isSmall(r.Chars[j+1])) {
			return r.entry(i, j), j
		}
	}
	return e, end
}

// entry returns what the lexicon knows of the word from start to end.
func (r *reader) entry(start, end int) entry {
	var folded [longestWord]byte
	n := end - start
	if n <= len(folded) {
		for i, c := range r.Chars[start:end] {
			folded[i] = lower(c)
		}
		if e, known := lexicon[string(folded[:n])]; known {
			return e
		}
	}
	return entry{class: unknown}
}

// has reports whether text, which is ASCII, stands at i; capitals and small letters are the same.
func (r *reader) has(i int, text string) bool {
	end := i + len(text)
	return i >= 0 && end <= len(r.Chars) && bytes.EqualFold(r.Chars[i:end], []byte(text))
}

// is reports whether few has c. A loop is quicker here than strings.IndexByte.
func is(c byte, few string) bool {
	for i := range len(few) {
		if few[i] == c {
			return true
		}
	}
	return false
}

// patterns holds the lines of patterns.txt, which explains them, and the sets of classes that they use.
var patterns = func() map[string]string {
	all := map[string]string{"Nameable": nameable, "Leading": leading, "Capitals": capitals, "Lowered": lowered}
	for part := range lines("patterns.txt", 2) {
		all[part[0]] = expanded(part[1], all)
	}
	return all
}()

var partName = regexp.MustCompile(`<[A-Z]\w*>`)

// expanded returns form with the patterns that it names.
func expanded(form string, patterns map[string]string) string {
	return partName.ReplaceAllStringFunc(form, func(name string) string { return patterns[name[1:len(name)-1]] })
}

// regular compiles an expression that may name patterns and matches where it is tried, pattern the one of that name.
func regular(form string) *regexp.Regexp {
	return regexp.MustCompile(`^(?:` + expanded(form, patterns) + `)`)
}
func pattern(name string) *regexp.Regexp { return regular(patterns[name]) }
