package redact

import "bytes"

const (
	maxKnown      = 32 // data that are looked for elsewhere in the text
	leastRepeated = 8  // characters of one
	leastSurname  = 4  // letters of a name's last word in a login
	maxInitials   = 3
)

// readRepeated takes what was found wherever it stands again in the text, without a label: numbers, birth dates, secrets,
// and names of several words, also as logins.
func (r *reader) readRepeated() {
	var begins [256]uint32 // a bit for each datum, by its first character
	found := r.edits
	if len(found) == 0 {
		return
	}
	for k, e := range found[:min(len(found), maxKnown)] {
		v := r.Chars[e.start:e.end]
		switch {
		case len(v) < leastRepeated, e.kind == address, e.kind == user, e.kind == mail,
			e.kind == secret && !looksSecret(v, false, false), e.kind == name && bytes.IndexByte(v, ' ') < 0:
		default:
			begins[lower(v[0])] |= 1 << k
		}
	}
	for i := range r.classes {
		known := begins[lower(r.Chars[r.start(i)])]
		if known == 0 || !r.isRead(i) || is(r.classes[i], "23456") || r.tokens[i].kind == nobodys ||
			isAlnum(r.char(r.start(i)-1)) {
			continue
		}
		for k := range found[:min(len(found), maxKnown)] {
			if known&(1<<k) == 0 {
				continue
			}
			e := found[k]
			if end := r.repeatedEnd(i, e); end > 0 && r.start(i) != e.start {
				r.redact(edit{r.start(i), end, e.kind})
			} else if end := r.loginEnd(i, e); end > 0 {
				r.redact(edit{r.start(i), end, user})
			}
		}
	}
}

// repeatedEnd returns the end of the datum e where it stands again at the token i; 0 where it does not. Case and signs may
// differ.
func (r *reader) repeatedEnd(i int, e edit) int {
	start, size := r.start(i), e.end-e.start
	if start+size > len(r.Chars) || isAlnum(r.char(start+size)) {
		return 0
	}
	for j := range size {
		a, b := r.Chars[e.start+j], r.Chars[start+j]
		if lower(a) != lower(b) && (isAlnum(a) || isAlnum(b) || b == '\n' || isMark(b) || e.kind == secret) {
			return 0
		}
	}
	return start + size
}

// loginEnd returns the end of the login at the word i that is made of the name e, its first word or initials and its last
// word: ana.reis, areis.
func (r *reader) loginEnd(i int, e edit) int {
	v := r.Chars[e.start:e.end]
	first, _, _ := bytes.Cut(v, []byte(" "))
	last := v[bytes.LastIndexByte(v, ' ')+1:]
	start := r.start(i)
	end := r.keyEnd(start)
	if e.kind != name || len(last) < leastSurname || start >= e.start && start < e.end {
		return 0
	}
	at := end - len(last)
	if at <= start || !bytes.EqualFold(r.Chars[at:end], last) {
		return 0
	}
	before := bytes.TrimRight(r.Chars[start:at], "._-")
	if len(before) > maxInitials && !bytes.EqualFold(before, first) {
		return 0
	}
	return end
}
