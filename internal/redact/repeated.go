package redact

import (
	"bytes"
	"math/bits"
)

const (
	maxKnown      = 32 // data that are looked for elsewhere in the text
	leastRepeated = 8  // characters of one
	leastSurname  = 4  // letters of a name's last word in a login
	maxInitials   = 3
)

// readRepeated takes what was found wherever it stands again in the text, without a label: numbers, birth dates,
// secrets, and names of several words, also as logins.
func (r *reader) readRepeated() {
	found := r.edits[:min(len(r.edits), maxKnown)]
	if len(found) == 0 {
		return
	}
	var begins [256]uint32 // a bit for each datum, by its first character
	for k, e := range found {
		v := r.Chars[e.start:e.end]
		isPlain := e.kind == name && bytes.IndexByte(v, ' ') < 0 || e.kind == secret && !looksSecret(v, false, false)
		if len(v) >= leastRepeated && !isPlain && e.kind != user {
			begins[lower(v[0])] |= 1 << k
		}
	}
	for i := range r.classes {
		start := r.start(i)
		if r.tokens[i].kind == nobodys || is(r.classes[i], "23") || isAlnum(r.char(start-1)) {
			continue // behind "protocolo", a claim's id, a host
		}
		for known := begins[lower(r.Chars[start])]; known != 0; known &= known - 1 {
			e := found[bits.TrailingZeros32(known)]
			if r.repeats(start, e) {
				r.redact(edit{start, start + e.end - e.start, e.kind})
			} else if e.kind == name {
				r.redact(edit{start, r.loginEnd(start, e), user})
			}
		}
	}
}

// repeats reports whether the datum e stands again at start. Case and signs may differ.
func (r *reader) repeats(start int, e edit) bool {
	v, again := r.Chars[e.start:e.end], r.ahead(start, e.end-e.start)
	if len(again) < len(v) || isAlnum(r.char(start+len(v))) {
		return false
	}
	for j, c := range again {
		if lower(c) != lower(v[j]) && (isAlnum(c) || isAlnum(v[j]) || c == '\n' || e.kind == secret) {
			return false
		}
	}
	return true
}

// loginEnd returns the end of the login at start that is made of the name e, its first word or initials and its last
// word: ana.reis, areis. It returns 0 for none.
func (r *reader) loginEnd(start int, e edit) int {
	first, rest, _ := bytes.Cut(r.Chars[e.start:e.end], []byte(" "))
	last := rest[bytes.LastIndexByte(rest, ' ')+1:]
	login := r.Chars[start:r.keyEnd(start)]
	at := len(login) - len(last)
	if len(last) < leastSurname || at <= 0 || !bytes.EqualFold(login[at:], last) {
		return 0
	}
	if before := bytes.TrimRight(login[:at], "._-"); len(before) > maxInitials && !bytes.EqualFold(before, first) {
		return 0
	}
	return start + len(login)
}
