package redact

import (
	"bytes"
	"encoding/base64"
)

const leastEncoded = 24 // characters of base64 that are read

// readEncoded takes base64 that holds a text with data in it.
func (r *reader) readEncoded() {
	for i := 0; i < len(r.Chars); i++ {
		start := i
		for i < len(r.Chars) && (isAlnum(r.Chars[i]) || is(r.Chars[i], "+/")) {
			i++
		}
		isPart := r.char(start-1) == '.' || r.char(i) == '.' && isAlnum(r.char(i+1)) // of a JSON web token
		if i-start < leastEncoded || isPart {
			continue
		}
		r.decoded, _ = base64.RawStdEncoding.AppendDecode(r.decoded[:0], r.Chars[start:start+(i-start)/4*4])
		if bytes.ContainsFunc(r.decoded, isControl) {
			continue
		} else if s := string(r.decoded); Text(s) != s {
			for r.char(i) == '=' {
				i++
			}
			r.redact(edit{start, i, secret})
		}
	}
}

func isControl(c rune) bool { return c < ' ' && !is(byte(c), "\t\r\n") }
