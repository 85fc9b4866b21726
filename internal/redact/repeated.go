package redact

import "bytes"

const (
	maxKnown      = 32 // data that are looked for elsewhere in the text
	leastRepeated = 8  // characters of one
	leastSurname  = 4  // letters of a name's last word in a login
	maxInitials   = 3
)

// readRepeated takes what was found wherever it stands again in the text, without a label: numbers, birth dates,
// secrets, and names of several words, also as logins.
func (r *reader) readRepeated() {
	r.known = r.known[:0]
	for _, e := range r.edits[:min(len(r.edits), maxKnown)] {
		v := r.Chars[e.start:e.end]
		isPlain := e.kind == name && bytes.IndexByte(v, ' ') < 0 || e.kind == secret && !looksSecret(v, false, false)
		if len(v) >= leastRepeated && !isPlain && e.kind != user {
			r.known = append(r.known, e)
		}
	}
	for i := 0; len(r.known) > 0 && i < len(r.classes); i++ {
		start := r.start(i)
		if r.tokens[i].kind == nobodys || is(r.classes[i], "23") || isAlnum(r.char(start-1)) {
			continue // behind "protocolo", a claim's id, a host
		}
		for _, e := range r.known {
			if lower(r.Chars[start]) != lower(r.Chars[e.start]) {
				continue
			} else if r.repeats(start, e) {
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
