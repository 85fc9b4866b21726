package redact

import (
	"encoding/base64"
	"unicode/utf8"
)

const (
	leastEncoded = 24 // characters of base64 that are read
	glance       = 16 // of them, to see whether they hold a text
)

// encodes says which characters are those of base64; table also holds the digits' values.
var inBase64 = func() (table [256]bool) {
	for c := range table {
		table[c] = looks[c] == isDigit || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '+' || c == '/'
	}
	return table
}()

// readEncoded takes base64 that holds a text with data in it.
func (r *reader) readEncoded() {
	for i := 0; i < len(r.Chars); i++ {
		start := i
		for i < len(r.Chars) && inBase64[r.Chars[i]] {
			i++
		}
		if i-start < leastEncoded || r.char(start-1) == '.' || r.char(i) == '.' { // a JSON web token's part
			continue
		}
		if !isText(r.decode(r.Chars[start : start+glance])) {
			continue
		}
		if plain := r.decode(r.Chars[start : start+(i-start)/4*4]); isText(plain) {
			s := string(plain)
			if Text(s) != s {
				for r.char(i) == '=' {
					i++
				}
				r.redact(edit{start, i, secret})
			}
		}
	}
}

// decode returns the bytes that v, base64, holds.
func (r *reader) decode(v []byte) []byte {
	r.decoded = append(r.decoded[:0], v...)
	n, _ := base64.RawStdEncoding.Decode(r.decoded, v)
	return r.decoded[:n]
}

// isText reports whether v may be a text: it has no controls, and few characters that are no ASCII.
func isText(v []byte) bool {
	others := 0
	for _, c := range v {
		switch {
		case c < ' ' && !is(c, "\t\r\n"), c == 0x7f:
			return false
		case c >= utf8.RuneSelf:
			others++
		}
	}
	return 4*others <= len(v)
}
