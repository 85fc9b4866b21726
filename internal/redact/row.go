package redact

import (
	"bytes"
	"slices"
)

// A row without a header tells by what is beside it whose a value is: "1;[CPF];Ana Reis;10/03/1955;2".

const (
	personal   = "\x01\x02\x03\x06\x08" // kinds of marks that tell of a person: CPF, CNS, card, name, id
	leastCells = 3                      // of a row
	nearby     = 2                      // cells between a person's mark and what is the person's, at most
)

// readRows finds what is beside a person's mark, or beside a name and a birth date, in a row.
func (r *reader) readRows() {
	read := 0
	for i, c := range r.classes {
		isPersons := is(c, marks) && is(byte(r.tokens[i].kind), personal)
		if start := r.start(i); start >= read && (isPersons || is(c, leading) && is(r.class(i-1), ";|,\"'")) {
			read = r.rowAt(start, read)
		}
	}
}

// isCell reports whether the next cell of a row begins right behind the token i.
func (r *reader) isCell(i int) bool {
	c := r.class(i + 1)
	return is(c, "\"'|") || c == ',' && r.class(i+2) != ' '
}

// around returns the sign before the blanks and quotation marks at i, going by step.
func (r *reader) around(i, step int) byte {
	for is(r.char(i), " \"'`") {
		i += step
	}
	return r.char(i)
}

// rowAt reads the row around `at`, which begins at from or later, and returns where it ends.
func (r *reader) rowAt(at, from int) int {
	start, separator, closer := at, r.around(at-1, -1), byte('\n')
	if !is(separator, ";|,") {
		separator = r.around(at+1, 1) // of a mark
	}
	switch {
	case is(separator, ";|,"):
	case r.isWide(at - 1), r.isWide(at + 1):
		separator = columnar
	default:
		return from
	}
	for start > from && r.Chars[start-1] != '\n' && !(separator == ',' && is(r.Chars[start-1], "([")) {
		start--
	}
	if c := r.char(start - 1); separator == ',' && is(c, "([") {
		closer = map[byte]byte{'(': ')', '[': ']'}[c]
	}
	all, end := r.cells(start, separator, closer)
	if len(all) < leastCells || closer == '\n' && separator == ',' && bytes.Contains(r.Chars[start:end], []byte(", ")) {
		return end
	}
	isNamed, isKnown, isBorn, isGivens, isNumbered := false, false, false, false, false
	for j := range all {
		v := &all[j]
		if v.end-v.start == 1 && isMark(r.Chars[v.start]) {
			v.kind = kind(r.Chars[v.start] & 0xf)
		} else if i := r.tokenAtOrBehind(v.start); r.class(i) == fixed || j > 0 && is(r.around(v.start-1, -1), ":=") {
			v.kind = nobodys // its column's or label's
		}
		isNamed, isBorn = isNamed || v.kind == name, isBorn || v.kind == birth
		_, isGiven := r.mayName(v)
		isGivens, isNumbered = isGivens || isGiven, isNumbered || r.numberKind(*v) != none
		isKnown = isKnown || r.isPersons(v) || isGivens && isNumbered
	}
	for j := range all {
		v, behind := &all[j], all[j+1:min(len(all), j+1+nearby)]
		isLikely, isGiven := r.mayName(v)
		isCNSs := isLikely && j > 0 && r.numberKind(all[j-1]) == cns
		isKnown = isKnown || isCNSs || isGiven && !isBorn && slices.ContainsFunc(behind, r.isBirth)
		if isKnown && (isGiven || isLikely && !isNamed) {
			isNamed = r.redact(edit{v.start, v.end, name})
			v.kind = name
		}
		if born := slices.IndexFunc(behind, r.isBirth); !isBorn && born >= 0 && r.isPersons(v) {
			isBorn = r.redact(edit{behind[born].start, behind[born].end, birth})
		}
	}
	for _, v := range all {
		if k := r.numberKind(v); isKnown && k != none {
			r.redact(edit{v.start, v.end, k})
		}
	}
	return end
}

var (
	spaced = regular(`\d+(?:[ .-]\d+)+`)
	// born is a birth date in a cell, perhaps without signs.
	born = regular(`(?:(?:19|20)\d\d[-/.]?(?:1[0-2]|0[1-9])[-/.]?(?:[12]\d|3[01]|0[1-9])|` +
		`(?:[12]\d|3[01]|0[1-9])[-/.]?(?:1[0-2]|0[1-9])[-/.]?(?:19|20)\d\d)(?:[T ]00:00:00[.0]*)?$`)
)

// isPersons reports whether the cell v tells that its row is a person's.
func (r *reader) isPersons(v *edit) bool { return is(byte(v.kind), personal) }

func (r *reader) isBirth(v edit) bool { return v.kind == none && born.Match(r.Chars[v.start:v.end]) }

// numberKind returns the kind of number that a person's cell v has: as long as a CPF or CNS, or a card's in groups.
func (r *reader) numberKind(v edit) kind {
	digits, c := r.Chars[v.start:v.end], &kinds[card]
	n := countDigits(digits)
	switch isAll := n == len(digits); {
	case v.kind != none:
	case isAll && n == 11:
		return cpf
	case isAll && n == 15 && startsCNS(digits):
		return cns
	case c.nearLeast <= n && n <= c.nearMost && len(spaced.Find(digits)) == len(digits):
		return card
	}
	return none
}

// mayName reports whether the cell v looks like a name, and whether a given name is among its words. Fewer than half of
// them may end as words of messages do.
func (r *reader) mayName(v *edit) (isLikely, isGiven bool) {
	n := r.nameWords(v.start, v.end)
	isLikely = v.kind == none && n.end == v.end && n.isSpaced && n.count > 2*n.messages &&
		fullName.Match(r.Chars[v.start:v.end])
	return isLikely, isLikely && n.isGiven
}
