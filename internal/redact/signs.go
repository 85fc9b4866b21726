package redact

import "bytes"

// What signs tell of: e-mail addresses and the users of URLs.

const (
	maxLocal    = 64 // bytes of an e-mail address's local part that is quoted or spelled
	maxPassword = 64 // bytes behind the slash in a URL's password
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
		switch c := r.Chars[i]; {
		case c == '@':
			e = r.mailAt(i, i+1, read)
		case c != ':':
			if at := r.spelled(i, "at", "arroba"); at > 0 {
				e = r.spelledMail(i, at, read)
			}
		case r.char(i+1) == '/' && r.char(i+2) == '/':
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

// mailAt returns the address whose sign is the characters from i to end; its local part begins at from or later.
func (r *reader) mailAt(i, end, from int) edit {
	start := i
	for start > from && (isAlnum(r.Chars[start-1]) || isOneOf(r.Chars[start-1], ".-_'+")) {
		start--
	}
	for start < i && isOneOf(r.Chars[start], ".'-+") {
		start++
	}
	isQuoted := r.char(i-1) == '"'
	if isQuoted {
		start = r.quotedLocal(i-1, from)
	}
	if start == i {
		return edit{}
	}
	domain := r.domainEnd(end, isQuoted || r.isBehindMail(start))
	switch {
	case domain == 0:
		return edit{}
	case bytes.HasSuffix(r.Chars[end:domain], []byte("whatsapp.net")) || string(r.Chars[end:domain]) == "c.us":
		return edit{start, domain, phone} // a WhatsApp account is a telephone number
	}
	return edit{start, domain, mail}
}

// quotedLocal returns where the local part begins whose closing quotation mark is at i: "maria silva"@x; i+1 for none.
func (r *reader) quotedLocal(i, from int) int {
	for j := i - 1; j >= max(from, i-maxLocal); j-- {
		switch c := r.Chars[j]; {
		case c == '"':
			return j
		case c == '\n' || isMark(c):
			return i + 1
		}
	}
	return i + 1
}

// isBehindMail reports whether a label of an e-mail address stands right before i: then any domain will do.
func (r *reader) isBehindMail(i int) bool {
	for i > 0 && isOneOf(r.Chars[i-1], " :='\"") {
		i--
	}
	return r.has(i-len("mail"), "mail")
}

// domainEnd returns the end of the longest domain at i whose last label begins with two letters; 0 for none. A
// single label will do where simple.
func (r *reader) domainEnd(i int, simple bool) int {
	best := 0
	for labels := 0; ; labels++ {
		end := i
		for isAlnum(r.char(end)) || end > i && r.char(end) == '-' {
			end++
		}
		for end > i && r.char(end-1) == '-' {
			end--
		}
		if end == i {
			return best
		}
		if looks[r.char(i)] == isLetter && (simple || labels > 0 && looks[r.char(i+1)] == isLetter) {
			best = end
		}
		if i = end + 1; r.char(end) != '.' {
			if i = r.spelled(r.pastBlank(end), "dot", "ponto"); i == 0 {
				return best
			}
		}
	}
}

func (r *reader) pastBlank(i int) int {
	if r.char(i) == ' ' {
		return i + 1
	}
	return i
}

// spelled returns where what follows the sign begins that is spelled at i as one of the words: (at), [arroba]; 0 for
// another.
func (r *reader) spelled(i int, words ...string) int {
	for _, w := range words {
		if end := i + 1 + len(w); isOneOf(r.char(i), "([{") && isOneOf(r.char(end), ")]}") && r.has(i+1, w) {
			return r.pastBlank(r.pastBlank(end + 1))
		}
	}
	return 0
}

// spelledMail returns the address whose spelled sign is the characters from i to end: maria (at) x.
func (r *reader) spelledMail(i, end, from int) edit {
	local := i
	for local > from && r.Chars[local-1] == ' ' && i-local < 2 {
		local--
	}
	start := local
	for start > max(from, local-maxLocal) && (isAlnum(r.Chars[start-1]) || isOneOf(r.Chars[start-1], "._+-")) {
		start--
	}
	domain := r.domainEnd(end, true)
	if start == local || domain == 0 || start > 0 && !isOneOf(r.Chars[start-1], " \n\"'<(,;:=") {
		return edit{}
	}
	return edit{start, domain, mail}
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
