package redact

import (
	"encoding/base64"
	"unicode/utf8"
)

const (
	leastEncoded = 24 // characters of base64 that are read
	glance       = 16 // of them, to see whether they hold a text
)

// readEncoded takes base64 that holds a text with data in it.
func (r *reader) readEncoded() {
	for i := 0; i < len(r.Chars); i++ {
		start := i
		for i < len(r.Chars) && (isAlnum(r.Chars[i]) || is(r.Chars[i], "+/")) {
			i++
		}
		isPart := r.char(start-1) == '.' || r.char(i) == '.' && isAlnum(r.char(i+1)) // of a JSON web token
		if i-start < leastEncoded || isPart || !isText(r.decode(r.Chars[start:start+glance])) {
			continue
		}
		plain := r.decode(r.Chars[start : start+(i-start)/4*4])
		if s := string(plain); isText(plain) && Text(s) != s {
			for r.char(i) == '=' {
				i++
			}
			r.redact(edit{start, i, secret})
		}
	}
}

// decode returns the bytes that v, base64, holds.
func (r *reader) decode(v []byte) []byte {
	r.decoded, _ = base64.RawStdEncoding.AppendDecode(r.decoded[:0], v)
	return r.decoded
}

// isText reports whether v may be a text: it has no controls, and few characters that are no ASCII.
func isText(v []byte) bool {
	others := 0
	for _, c := range v {
		if c < ' ' && !is(c, "\t\r\n") {
			return false
		} else if c >= utf8.RuneSelf {
			others++
		}
	}
	return 4*others <= len(v)
}
