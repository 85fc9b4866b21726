package redact

import (
	"bytes"
	"iter"

	"retry-worker/internal/text"
)

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
	'\n': line, ',': comma, ';': hard, '!': hard, '?': hard, '&': hard,
	')': closer, ']': closer, '}': closer, '|': closer,
	'<': open, '{': open, ':': sign, '=': sign, '>': sign, '"': sign, '\'': sign, '-': dash,
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

// tokenise splits the characters. What signs told of is a mark already.
func (r *reader) tokenise() {
	r.tokens, r.gap, r.host, r.path = r.tokens[:0], 0, 0, 0
	told := r.edits
	for i := 0; i < len(r.Chars); {
		if len(told) > 0 && i >= told[0].start {
			i = r.add(token{start: int32(i), end: int32(told[0].end), form: mark, kind: told[0].kind, gap: r.gap})
			told = told[1:]
		} else {
			i = r.tokenAt(i)
		}
	}
	r.findFixed()
}

// add adds the token t and returns where it ends.
func (r *reader) add(t token) int {
	r.tokens = append(r.tokens, t)
	r.gap = 0
	return int(t.end)
}

// tokenAt reads the token or the sign at i, and returns where it ends.
func (r *reader) tokenAt(i int) int {
	t := token{start: int32(i), end: int32(i + 1), gap: r.gap, host: i < r.host, path: i < r.path}
	switch c := r.Chars[i]; looks[c] {
	case isBlank:
		return i + 1
	case isSign:
		return r.signAt(i)
	case isLetter: // an identifier that is not known as a whole is its words: numero|Carteira, CPF|Beneficiario
		for end := r.run(i, isLetter); i < end; t.gap = 0 {
			w := r.wordAt(i, end)
			t.start, t.end, t.class, t.kind = w.start, w.end, w.class, w.kind
			i = r.add(t)
		}
		return i
	case isDigit:
		t.end, t.form, t.joint = int32(r.run(i, isDigit)), number, r.jointAt(i)
	case isPlaceholder:
		t.form, t.kind = mark, kind(c&0xf)
	}
	return r.add(t)
}

// signAt takes account of the sign at i, and returns where it ends.
func (r *reader) signAt(i int) int {
	c, next := r.Chars[i], r.char(i+1)
	isBehindLetter := looks[r.char(i-1)] == isLetter
	r.gap |= other
	if !isOneOf(c, `"'`) || !isBehindLetter { // it opens nothing
		r.gap |= gaps[c]
	}
	switch {
	case c == ']' && r.char(r.pastBlanks(i+1)) == '=': // ["nome"]=>
		r.gap &^= closer
	case c == '>' && r.char(i-1) == '=':
		return i + 1 + len(typeOf.Find(r.Chars[i+1:min(len(r.Chars), i+maxToSecret)]))
	case c == '`' && isBehindLetter:
		r.gap |= closer
	case c == ';' && r.char(i-1) == '"':
		if m := serialized.Find(r.Chars[i:min(len(r.Chars), i+maxToSecret)]); m != nil {
			r.gap = r.gap&^hard | sign
			return i + len(m)
		}
	case r.has(i, "....") || r.has(i, "____"): // leads to a value
		r.gap |= sign
		for ; r.char(i) == c; i++ {
		}
		return i
	case c == '\n' && next == ' ':
		r.gap |= indent
	case c == '.' && (next == ' ' || next == '\n') && !r.abbreviates(i):
		r.gap |= hard
	case c == '<':
		return r.tagAt(i + 1)
	case c == '(' && isBehindLetter:
		for _, ending := range [...]string{"a)", "s)", "as)", "es)"} { // beneficiário(a)
			if r.has(i+1, ending) {
				return i + 1 + len(ending)
			}
		}
	case r.has(i, "://"):
		r.gap |= url
		if i >= r.host {
			r.host = r.authorityEnd(i + 3)
		}
		if r.host >= r.path {
			r.path = r.pathEnd(r.host)
		}
	}
	return i + 1
}

// typeOf is what PHP writes before a value: ["nome"]=> string(3) "Ana".
var typeOf = regular(`\s*string\(\d+\) `)

// serialized is what stands there where PHP serializes: s:4:"nome";s:3:"Ana".
var serialized = regular(`;s:\d+:`)

// jointAt returns the separators between the number that begins at i and the one before; 0 where they are of two.
func (r *reader) jointAt(i int) (joint separators) {
	for last := i - 1; last >= 0 && i-last <= maxGap+1; last-- {
		c := r.Chars[last]
		if looks[c] == isDigit {
			return joint
		}
		if separatorSets[c] == 0 {
			return 0
		}
		joint |= separatorSets[c]
	}
	return 0
}

const maxShort = 3 // letters of an abbreviation, known or not: n., tel., Sra.

// abbreviates reports whether a full stop at i is an abbreviation's.
func (r *reader) abbreviates(i int) bool {
	if len(r.tokens) == 0 {
		return false
	}
	t := &r.tokens[len(r.tokens)-1]
	isBehind := int(t.end) == i || r.char(int(t.end)) == '(' && r.char(i-1) == ')'
	isKnown := is(t.class, setOf(keep, person)) || t.kind == user || t.class == qualifier && t.kind == name
	return isBehind && t.form == word && (t.size() <= maxShort || t.size() <= maxShort+2 && isKnown)
}

// labelTag is what ends a label in HTML: the end of its cell and the begin of the next one, or a tag that only looks.
var labelTag = regular(`/(?:td|th|dt|label|span)>[ \n:]*<(?:td|dd|span)\b[^<>]{0,200}>|` +
	`/?(?:b|strong|em|i|label|span)(?: [^<>]{0,200})?>`)

// tagAt reads on behind a '<', at i: the name in a closing tag says nothing of what follows, CDATA nothing at all.
func (r *reader) tagAt(i int) int {
	const cdata = "![CDATA["
	if r.has(i, cdata) {
		r.gap &^= open
		return i + len(cdata)
	}
	if first := lower(r.char(i)); isOneOf(first, "bseil") || first == '/' && isOneOf(lower(r.char(i+1)), "tdlsbei") {
		if tag := labelTag.Find(r.Chars[i:min(len(r.Chars), i+maxQuoted)]); tag != nil {
			r.gap = r.gap&^open | sign
			return i + len(tag)
		}
	}
	if r.char(i) != '/' {
		return i
	}
	r.gap |= endTag
	for i < len(r.Chars) && (looks[r.Chars[i]] == isLetter || isOneOf(r.Chars[i], "/:-_.")) {
		i++
	}
	return i
}

// lookup returns the first word of the letters at i; an empty one where there are none.
func (r *reader) lookup(i int) token { return r.wordAt(i, r.run(i, isLetter)) }

// words are those from start to end.
func (r *reader) words(start, end int) iter.Seq[token] {
	return func(yield func(token) bool) {
		for i := start; i < end; i++ {
			if t := r.lookup(i); t.size() > 0 {
				if !yield(t) {
					return
				}
				i = int(t.end) - 1
			}
		}
	}
}

// wordAt returns the letters from i to end as one word, or the first of several: before a capital that follows a small
// letter or that one follows another begins.
func (r *reader) wordAt(i, end int) token {
	t := token{start: int32(i), end: int32(end)}
	t.entry(r.Chars)
	for j := i + 1; t.class == unknown && j < end; j++ {
		isHump := !isSmall(r.Chars[j]) &&
			(isSmall(r.Chars[j-1]) || j > i+1 && j+1 < end && isSmall(r.Chars[j+1]))
		if isHump {
			t.end = int32(j)
			t.entry(r.Chars)
			break
		}
	}
	return t
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

// has reports whether what is at i, in any case, is ASCII text.
func (r *reader) has(i int, text string) bool {
	end := i + len(text)
	return i >= 0 && end <= len(r.Chars) && bytes.EqualFold(r.Chars[i:end], []byte(text))
}

// isOneOf reports whether c is one of few signs, for which a loop is quicker than strings.IndexByte.
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
		if next := int(t.end); end == 0 && t.form == number && isOneOf(r.char(next), "-/.:") &&
			t.size() != 3 && looks[r.char(next+1)] == isDigit {
			as, end = date, r.instantEnd(start)
			t.till = int32(end)
		}
		for j := i; j < len(r.tokens) && int(r.tokens[j].start) < end; j++ {
			r.tokens[j].form = as
			i = j
		}
	}
}
