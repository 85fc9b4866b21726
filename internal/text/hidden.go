package text

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Hidden reports whether a character acts where it stands as it is, or cannot be seen: controls, soft hyphens, marks of
// direction and of no width, separators of lines.
func Hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// InertJSON returns a JSON text that says the same with nothing in it that a terminal, an editor or a browser acts on:
// <, > and &, and what is hidden, are written as \u escapes, but for those that would take two. (The controls below
// U+0020 are so already in every JSON text.) What is not UTF-8 becomes U+FFFD. It must be valid JSON: only within its
// strings can such a character stand.
func InertJSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, acts) && utf8.Valid(text) {
		return text
	}
	b := make([]byte, 0, len(text)+64)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if acts(r) {
			b = fmt.Appendf(b, `\u%04x`, r)
		} else {
			b = utf8.AppendRune(b, r)
		}
		text = text[size:]
	}
	return b
}

func acts(r rune) bool {
	return r == '<' || r == '>' || r == '&' || r >= 0x7f && r <= 0xffff && Hidden(r)
}
