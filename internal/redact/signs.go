package redact

import "bytes"

// E-mail addresses and the users of URLs show by their signs.

const (
	maxLocal  = 64  // bytes of an e-mail address's local part that is quoted or spelled
	maxDomain = 300 // bytes of a domain
)

var (
	spelledAt, domain, host        = pattern("spelledAt"), pattern("domain"), pattern("host")
	slashed, userInfo, quotedLocal = pattern("slashed"), pattern("userInfo"), pattern("quotedLocal")
)

// readSigns finds e-mail addresses and users.
func (r *reader) readSigns() {
	read := 0
	for i := 0; i < len(r.Chars); i++ {
		next := bytes.IndexAny(r.Chars[i:], "@:([{")
		if next < 0 {
			return
		}
		i += next
		e := edit{}
		switch {
		case r.Chars[i] == '@':
			e = r.mailAt(i, i, i+1, read)
		case r.has(i+1, "a"):
			if at := spelledAt.Find(r.Chars[i:]); at != nil { // maria (at) x
				e = r.mailAt(i, i-min(2, i-len(bytes.TrimRight(r.Chars[:i], " "))), i+len(at), read)
			}
		case r.has(i, "://"):
			start := i + 3
			end := r.authorityEnd(start)
			if at := bytes.LastIndexByte(r.Chars[start:end], '@'); at > 0 {
				e = edit{start, start + at, user}
			} else if m := slashed.FindSubmatchIndex(r.Chars[start:]); m != nil {
				e = edit{start, start + m[3], user}
			} else {
				i = end - 1
			}
		}
		if e.kind != none && r.redact(e) {
			read = e.end
			i = read - 1
		}
	}
}

// mailAt returns the address whose sign is at i. Its local part ends at local and begins at from or later, its domain
// begins at end.
func (r *reader) mailAt(i, local, end, from int) edit {
	start := local
	for start > from && (isAlnum(r.Chars[start-1]) || is(r.Chars[start-1], ".-_'+")) {
		start--
	}
	start = local - len(bytes.TrimLeft(r.Chars[start:local], ".'-+"))
	form, isSpelled := domain, r.Chars[i] != '@'
	first := max(from, i-maxLocal)
	if m := quotedLocal.FindSubmatchIndex(r.Chars[first:i]); r.char(i-1) == '"' && m != nil {
		start, form = first+m[2], host
	} else if label := bytes.TrimRight(r.Chars[max(0, start-maxLocal):start], " :='\""); isSpelled ||
		bytes.HasSuffix(bytes.ToLower(label), []byte("mail")) { // then any domain will do
		form = host
	}
	m := form.FindIndex(r.ahead(end, maxDomain))
	isTorn := isSpelled && (local-start > maxLocal || start > 0 && !is(r.Chars[start-1], " \n\"'<(,;:="))
	if m == nil || start == local || isTorn {
		return edit{}
	}
	if v := r.Chars[end : end+m[1]]; bytes.HasSuffix(v, []byte("whatsapp.net")) || string(v) == "c.us" {
		return edit{start, end + m[1], phone} // a WhatsApp account is a telephone number
	}
	if r.has(end+m[1], ":/") || r.has(end+m[1], ":~") { // a remote path, whose host stays: scp x ana@host:/home
		return edit{start, local, user}
	}
	return edit{start, end + m[1], mail}
}

// authorityEnd returns the end of the URL's authority that begins at i: user, host and port.
func (r *reader) authorityEnd(i int) int {
	i += len(userInfo.Find(r.ahead(i, maxNoted)))
	for i < len(r.Chars) && (r.Chars[i] != '/' && !endsPath(r.Chars[i]) || r.in[r.From[i]] == '%') {
		i++
	}
	return i
}

// urlEnd returns the end of the URL's path that begins at i.
func (r *reader) urlEnd(i int) int {
	for i < len(r.Chars) && !endsPath(r.Chars[i]) {
		i++
	}
	return i
}

// endsPath reports whether c ends the authority or path of a URL within a text.
func endsPath(c byte) bool { return is(c, "?# \n\"'<>,;|&") }
