package text

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Hidden reports whether a character acts where it stands as it is, or cannot be seen: controls, soft hyphens, marks of
// direction and of no width, separators of lines.
func Hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Inert returns s as one line with nothing hidden in it, but for the joiners of scripts and emoji. Line breaks and tabs
// become blanks, what else is hidden (an ANSI sequence's ESC among it) and bytes that are no UTF-8 U+FFFD.
func Inert(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case ' ' <= r && r < 0x7f, r == '\u200c', r == '\u200d':
			return r
		case '\t' <= r && r <= '\r', r == 0x85, r == 0x2028, r == 0x2029:
			return ' '
		case Hidden(r):
			return utf8.RuneError
		}
		return r
	}, s)
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

// JSON returns v, which must have a JSON form, in a line in which no character is escaped that need not be.
func JSON(v any) []byte {
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	if err := to.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
