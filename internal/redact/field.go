package redact

import (
	"bytes"
	"regexp"
)

const (
	maxQuoted   = 220 // characters of a word and a quoted value, and to the name of its element
	leastQuoted = 4   // digits that a quoted number has at least
)

var quoted = regexp.MustCompile(`^\w+ ?[:=]? ?(?:'%?([^'%\n]+)%?'|"([^"\n]+)")`)

// quotedBehind returns what is quoted right behind the word t.
func (r *reader) quotedBehind(t *token) (start, end int) {
	m := quoted.FindSubmatchIndex(r.Chars[t.start:min(len(r.Chars), int(t.start)+maxQuoted)])
	if m == nil {
		return 0, 0
	}
	return int(t.start) + max(m[2], m[4]), int(t.start) + max(m[3], m[5])
}

// quotedAt returns the value that the word i, "value" or "valor", says is quoted next, if its field is personal: The
// value 'MARIA' of element 'ans:nomeBeneficiario' is not valid.
func (r *reader) quotedAt(i int) edit {
	t := &r.tokens[i]
	if t.class != quoting || t.path {
		return edit{}
	}
	start, end := r.quotedBehind(t)
	if end == 0 {
		r.readKey(i)
		return edit{}
	}
	k := r.fieldBehind(i+1, end)
	if k == nobodys && r.run(start, isDigit) == end {
		return edit{end: end}
	}
	if !r.suits(start, end, k) {
		if k = r.fieldBefore(i, start, end); !r.suits(start, end, k) {
			return edit{}
		}
	}
	return edit{start, end, k}
}

// readKey takes the values that the word i says are a person's key: The duplicate key value is (12, Ana Reis).
func (r *reader) readKey(i int) {
	const is = " is ("
	from := int(r.tokens[i].end)
	if !r.has(from, is) || bytes.IndexByte(r.Chars[from:min(len(r.Chars), from+maxQuoted)], ')') < 0 {
		return
	}
	k := r.fieldBefore(i, 0, 0)
	values, _ := r.cells(from+len(is), ',', ')')
	for _, v := range values {
		r.readCell(v, k)
	}
}

// fieldBehind returns the kind of the element, attribute or type that the rest of the sentence names, from the token i
// and the character end on.
func (r *reader) fieldBehind(i, end int) kind {
	for ; i < len(r.tokens) && int(r.tokens[i].start)-end < maxQuoted; i++ {
		t := &r.tokens[i]
		if int(t.start) < end {
			continue
		}
		isQuoted := t.gap&hard != 0 && bytes.Count(r.Chars[end+1:t.start], []byte("'"))%2 == 1 // a pattern: '[!-~]{20}'
		if t.form == mark || t.gap&line != 0 || t.gap&hard != 0 && !isQuoted {
			break
		}
		if is(t.class, fields|setOf(engineKey)) {
			if from, to := r.quotedBehind(t); to > 0 {
				return r.fieldKind(from, to)
			}
		}
	}
	return none
}

// fieldBefore returns the kind of the label that stands some words before the token i, whose value is from start to end.
func (r *reader) fieldBefore(i, start, end int) kind {
	for j := i - 1; j >= 0 && i-j <= 2*near; j-- {
		switch t := &r.tokens[j]; {
		case t.form == mark || is(t.class, setOf(keep, keepAll, registry)) && t.form == word:
			return none
		case t.form == word && is(t.class, setOf(label, named, person)):
			from, to := r.nameStart(int(t.start)), r.keyEnd(int(t.end))
			k := r.fieldKind(from, to)
			if k == id && !r.suits(start, end, k) && bytes.IndexByte(r.Chars[from:to], '_') >= 0 { // nm_paciente
				return name
			}
			return k
		}
	}
	return none
}

// fieldKind returns the kind of the field whose name is from start to end: st_CPF, numeroCarteira. Its namespace does
// not count.
func (r *reader) fieldKind(start, end int) kind {
	start += bytes.LastIndexAny(r.Chars[start:end], ":}") + 1
	k, before := none, unknown
	for t := range r.words(start, end) {
		isOwned := before == keyOwner && t.class == engineKey // API_KEY
		before = t.class
		switch {
		case t.class == article:
		case k == name && is(t.class, keeping|setOf(stop, paper, house)): // nomeProcedimento
			return none
		case k == secret && t.class == stop: // PASSWORD_FILE
			return none
		case k != none && k != id && k != secret:
			return k
		case t.class == secretive || isOwned:
			k = secret
		case k == secret:
		case is(t.class, keeping):
			return nobodys
		case is(t.class, setOf(label, named, person)), t.class == qualifier && t.kind == name:
			k = t.kind
		}
	}
	return k
}

// bound is a value and the column it is bound to: '19550918' (DT_NASCIMENTO).
var bound = regular(`([^'\n]{1,99})' \((\w+)\)`)

// boundAt returns the value of a personal column that the token i begins.
func (r *reader) boundAt(i int) edit {
	start := int(r.tokens[i].start)
	if r.char(start-1) != '\'' {
		return edit{}
	}
	m := bound.FindSubmatchIndex(r.Chars[start:min(len(r.Chars), start+maxQuoted)])
	if m == nil {
		return edit{}
	}
	return edit{start, start + m[3], r.suited(start, start+m[3], r.fieldKind(start+m[4], start+m[5]))}
}

// suited returns k if the characters from start to end may be a datum of it; none otherwise. What a person's field
// holds is a number or a name.
func (r *reader) suited(start, end int, k kind) kind {
	switch {
	case r.suits(start, end, k):
		return k
	case k == id && r.suits(start, end, name):
		return name
	}
	return none
}

// suits reports whether the characters from start to end may be a datum of kind k.
func (r *reader) suits(start, end int, k kind) bool {
	v := r.Chars[start:end]
	digits := 0
	for _, c := range v {
		if looks[c] == isDigit {
			digits++
		}
	}
	letters := bytes.ContainsFunc(v, isAnyLetter)
	switch k {
	case none, nobodys:
		return false
	case secret:
		return !isNothing(v) && !bytes.Contains(v, []byte("://"))
	case mail, address, user:
		return letters
	case name:
		t := r.lookup(start)
		return letters && (is(t.class, nameable) || looks[r.Chars[start]] != isLetter)
	}
	return digits >= min(leastQuoted, kinds[k].least) || letters && digits == leastQuoted-1
}
