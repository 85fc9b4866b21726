package redact

import "retry-worker/internal/text"

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

var gaps = [256]gap{
	'\n': line, ',': comma, ';': hard, '!': hard, '?': hard, '&': hard, ')': closer, ']': closer, '}': closer, '|': closer,
	'<': open, '{': open, ':': sign, '=': sign, '>': sign, '"': sign, '\'': sign, '-': dash, '$': dollar,
}

func isSmall(c byte) bool  { return 'a' <= c && c <= 'z' || c == text.Small }
func isAlnum(c byte) bool  { return looks[c] == isLetter || looks[c] == isDigit }
func lower(c byte) byte    { return c | 0x20 }
func (t *token) size() int { return int(t.end - t.start) }
func (r *reader) char(i int) byte {
	if i < 0 || i >= len(r.Chars) {
		return 0
	}
	return r.Chars[i]
}

// run returns the end of the characters of one look at i.
func (r *reader) run(i int, l look) int {
	for i < len(r.Chars) && looks[r.Chars[i]] == l {
		i++
	}
	return i
}

// tokenise splits the characters.
func (r *reader) tokenise() {
	r.tokens = r.tokens[:0]
	var between gap
	host, path := 0, 0 // ends of a URL's parts
	mails := r.edits
	for i := 0; i < len(r.Chars); {
		start := i
		t := token{start: int32(i), gap: between, host: i < host, path: i < path}
		if len(mails) > 0 && i >= mails[0].start {
			i, t.form, t.kind = mails[0].end, mark, mails[0].kind
			t.end, mails = int32(i), mails[1:]
			r.tokens = append(r.tokens, t)
			between = 0
			continue
		}
		switch c := r.Chars[i]; looks[c] {
		case isBlank:
			i++
			continue
		case isLetter:
			i = r.run(i, isLetter)
			r.addWords(t, i)
		case isDigit:
			i = r.run(i, isDigit)
			t.end, t.form, t.joint = int32(i), number, r.jointAt(start)
			r.tokens = append(r.tokens, t)
		case isPlaceholder:
			i++
			t.end, t.form, t.kind = int32(i), mark, kind(c&0xf)
			r.tokens = append(r.tokens, t)
		default:
			if c == '\'' && looks[r.char(i-1)] == isLetter { // the patient's: it opens nothing
				c = 0
			}
			between |= gaps[c] | other
			i++
			if c == '(' && looks[r.char(i-2)] == isLetter { // beneficiário(a)
				if end := i + r.inflection(i); end > i {
					i = end
					continue
				}
			}
			switch {
			case c == '.' && (r.char(i) == ' ' || r.char(i) == '\n') && !r.abbreviates(start):
				between |= hard
			case c == '<':
				i, between = r.tag(i, between)
			case c == ':' && r.char(i) == '/' && r.char(i+1) == '/':
				between |= url
				if i >= host {
					host = r.authorityEnd(i + 2)
				}
				if host >= path {
					path = r.pathEnd(host, len(r.Chars))
				}
			}
			continue
		}
		between = 0
	}
	r.findFixed()
}

// jointAt returns the separators between the number that begins at i and the one before; 0 where they are of two.
func (r *reader) jointAt(i int) (joint separators) {
	last := i - 1
	for ; i-last <= maxGap+1 && last >= 0 && looks[r.Chars[last]] != isDigit; last-- {
		if separatorSets[r.Chars[last]] == 0 {
			return 0
		}
		joint |= separatorSets[r.Chars[last]]
	}
	if last < 0 || looks[r.Chars[last]] != isDigit {
		return 0
	}
	return joint
}

// inflection returns the length of the ending in parentheses at i.
func (r *reader) inflection(i int) int {
	for _, ending := range [...]string{"a)", "s)", "as)", "es)"} {
		if r.has(i, ending) {
			return len(ending)
		}
	}
	return 0
}

// abbreviates reports whether a full stop at i is an abbreviation's: n., tel., Sra.
func (r *reader) abbreviates(i int) bool {
	const maxShort = 3
	if len(r.tokens) == 0 {
		return false
	}
	t := &r.tokens[len(r.tokens)-1]
	return (int(t.end) == i || r.char(int(t.end)) == '(' && r.char(i-1) == ')') && t.form == word && (t.size() <= maxShort || t.class == keep && t.size() <= maxShort+1)
}

// tag reads on behind a '<' at i-1: the name in a closing tag says nothing of what follows, CDATA nothing at all.
func (r *reader) tag(i int, between gap) (int, gap) {
	const cdata = "![CDATA["
	if r.has(i, cdata) {
		return i + len(cdata), between &^ open
	}
	if r.char(i) != '/' {
		return i, between
	}
	for i < len(r.Chars) && (looks[r.Chars[i]] == isLetter || isOneOf(r.Chars[i], "/:-_.")) {
		i++
	}
	return i, between | endTag
}

// addWords adds the word t, which ends at end; an identifier of several that is not known as a whole as its words:
// numero|Carteira, CPF|Beneficiario.
func (r *reader) addWords(t token, end int) {
	t.end = int32(end)
	t.entry(r.Chars)
	if t.class != unknown || !r.isCamel(int(t.start), end) {
		r.tokens = append(r.tokens, t)
		return
	}
	for start := int(t.start); start < end; {
		t.start = int32(start)
		start = r.humpEnd(start, end)
		t.end = int32(start)
		t.entry(r.Chars)
		r.tokens = append(r.tokens, t)
		t.gap, t.inner = 0, true
	}
}

// isCamel reports whether there may be several words in one.
func (r *reader) isCamel(start, end int) bool {
	for i := start + 1; i < end; i++ {
		if isSmall(r.Chars[i-1]) && !isSmall(r.Chars[i]) {
			return true
		}
	}
	return end-start > 2 && !isSmall(r.Chars[start+1]) && isSmall(r.Chars[end-1])
}

// humpEnd returns the end of the word at i: before a capital that follows a small letter or that one follows.
func (r *reader) humpEnd(i, end int) int {
	for j := i + 1; j < end; j++ {
		before, here := isSmall(r.Chars[j-1]), isSmall(r.Chars[j])
		if before && !here || j > i+1 && !before && !here && j+1 < end && isSmall(r.Chars[j+1]) {
			return j
		}
	}
	return end
}

// entry looks the word up.
func (t *token) entry(chars []byte) {
	var folded [longestWord]byte
	if t.size() > len(folded) {
		t.class, t.kind = unknown, none
		return
	}
	for i, c := range chars[t.start:t.end] {
		folded[i] = lower(c)
	}
	e := lexicon[string(folded[:t.size()])]
	t.class, t.kind = e.class, e.kind
}

// has reports whether what is at i, in any case, is text.
func (r *reader) has(i int, text string) bool {
	if i < 0 || i+len(text) > len(r.Chars) {
		return false
	}
	for j := range len(text) {
		if c := r.Chars[i+j]; c != text[j] && (looks[c] != isLetter || lower(c) != lower(text[j])) {
			return false
		}
	}
	return true
}

func isOneOf(c byte, signs string) bool {
	for i := range len(signs) {
		if signs[i] == c {
			return true
		}
	}
	return false
}

// findFixed finds the dates and times, and what is never anybody's: UUIDs, hashes and claims' ids.
func (r *reader) findFixed() {
	for i := 0; i < len(r.tokens); i++ {
		t := &r.tokens[i]
		start := int(t.start)
		as, end := fixed, 0
		if t.form == mark || i > 0 && t.start == r.tokens[i-1].end && t.form == word {
			continue
		}
		if end = r.identifierEnd(start); end == 0 && t.class == claim && r.char(int(t.end)) == '-' {
			end = r.claimEnd(int(t.end))
		}
		if end == 0 && t.form == number && isOneOf(r.char(int(t.end)), "-/.:") {
			as, end = date, r.instantEnd(start)
		}
		for end > 0 && i < len(r.tokens) && int(r.tokens[i].start) < end {
			r.tokens[i].form = as
			if i++; i == len(r.tokens) || int(r.tokens[i].start) >= end {
				i--
				break
			}
		}
	}
}
