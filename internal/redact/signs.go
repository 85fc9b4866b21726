package redact

import (
	"bytes"
	"regexp"
)

// What signs tell of: e-mail addresses and the users of URLs.

const (
	maxLocal    = 64 // bytes of an e-mail address's local part that is quoted or spelled
	maxPassword = 64 // bytes behind the slash in a URL's password
)

const (
	maxDomain = 300 // bytes of a domain
	aLabel    = `[a-z0-9\x{fffd}](?:[a-z0-9\x{fffd}-]*[a-z0-9\x{fffd}])?`
	aDot      = `(?:\.| ?[(\[{](?:dot|ponto)[)\]}] ?)`
)

var (
	spelledAt = regexp.MustCompile(`(?i)^[(\[{](?:at|arroba)[)\]}] {0,2}`)
	// domain is one whose last label begins with two letters; host any.
	domain = regexp.MustCompile(`(?i)^(?:` + aLabel + aDot + `)+` +
		`[a-z\x{fffd}]{2}(?:[a-z0-9\x{fffd}-]*[a-z0-9\x{fffd}])?`)
	host = regexp.MustCompile(`(?i)^[a-z\x{fffd}](?:[a-z0-9-]*[a-z0-9])?(?:` + aDot + aLabel + `)*`)
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
			if m := spelledAt.FindIndex(r.Chars[i:]); m != nil { // maria (at) x
				local := i
				for i-local < 2 && r.char(local-1) == ' ' {
					local--
				}
				e = r.mailAt(i, local, i+m[1], read)
			}
		case r.has(i, "://"):
			if e = r.userAt(i + 3); e.kind == none {
				i = r.authorityEnd(i+3) - 1
			}
		}
		if e.kind != none {
			r.redact(e.start, e.end, e.kind)
			read = e.end
			i = read - 1
		}
	}
}

// mailAt returns the address whose sign is at i. Its local part ends at local and begins at from or later, its domain
// begins at end.
func (r *reader) mailAt(i, local, end, from int) edit {
	start := local
	for start > from && (isAlnum(r.Chars[start-1]) || isOneOf(r.Chars[start-1], ".-_'+")) {
		start--
	}
	for start < local && isOneOf(r.Chars[start], ".'-+") {
		start++
	}
	form, isSpelled := domain, r.Chars[i] != '@'
	if quote := r.quotedLocal(i-1, from); quote >= 0 {
		start, form = quote, host
	} else if isSpelled || r.isBehindMail(start) {
		form = host
	}
	m := form.FindIndex(r.Chars[end:min(len(r.Chars), end+maxDomain)])
	isTorn := isSpelled && (local-start > maxLocal || start > 0 && !isOneOf(r.Chars[start-1], " \n\"'<(,;:="))
	if m == nil || start == local || isTorn {
		return edit{}
	}
	if v := r.Chars[end : end+m[1]]; bytes.HasSuffix(v, []byte("whatsapp.net")) || string(v) == "c.us" {
		return edit{start, end + m[1], phone} // a WhatsApp account is a telephone number
	}
	return edit{start, end + m[1], mail}
}

// quotedLocal returns where the local part begins whose closing quotation mark is at i: "maria silva"@x; -1 for none.
func (r *reader) quotedLocal(i, from int) int {
	if i < from || r.char(i) != '"' {
		return -1
	}
	first := max(from, i-maxLocal)
	quote := bytes.LastIndexByte(r.Chars[first:i], '"')
	if quote < 0 || bytes.IndexByte(r.Chars[first+quote:i], '\n') >= 0 {
		return -1
	}
	return first + quote
}

// isBehindMail reports whether a label of an e-mail address stands right before i: then any domain will do.
func (r *reader) isBehindMail(i int) bool {
	for i > 0 && isOneOf(r.Chars[i-1], " :='\"") {
		i--
	}
	return r.has(i-len("mail"), "mail")
}

// authorityEnd returns where a URL's host ends that begins at i.
func (r *reader) authorityEnd(i int) int {
	for i < len(r.Chars) && (r.Chars[i] != '/' && !endsPath(r.Chars[i]) || r.isEncoded(i)) {
		i++
	}
	return i
}

// isEncoded reports whether the character at i is no sign of its URL's.
func (r *reader) isEncoded(i int) bool { return r.in[r.From[i]] == '%' }

// pathEnd returns where the URL's path that begins at i ends, limit at the most.
func (r *reader) pathEnd(i, limit int) int {
	for i < min(len(r.Chars), limit) && !endsPath(r.Chars[i]) {
		i++
	}
	return i
}

// endsPath reports whether c ends the authority or path of a URL within a text.
func endsPath(c byte) bool { return isOneOf(c, "?# \n\"'<>,;|&") }

// userAt returns the user and the password in the authority of the URL that begins at i.
func (r *reader) userAt(i int) edit {
	end := r.authorityEnd(i)
	authority := r.Chars[i:end]
	at := bytes.LastIndexByte(authority, '@')
	if at < 0 { // a slash in the password ends it
		_, port, found := bytes.Cut(authority, []byte(":"))
		if !found || len(bytes.Trim(port, "0123456789]:")) == 0 || bytes.ContainsFunc(authority, isBracket) {
			return edit{}
		}
		path := r.Chars[i:r.pathEnd(end, end+maxPassword)]
		if at = bytes.LastIndexByte(path, '@'); at < 0 || bytes.ContainsFunc(path, isBracket) {
			return edit{}
		}
	}
	for _, c := range r.Chars[i : i+at] {
		if isMark(c) {
			return edit{}
		}
	}
	if at == 0 {
		return edit{}
	}
	return edit{i, i + at, user}
}

func isBracket(c rune) bool { return c == '[' }
