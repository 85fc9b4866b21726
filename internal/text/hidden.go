package text

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Hidden reports whether a character is invisible or acts on its surroundings: controls, soft hyphens, marks of
// direction and of no width, line separators.
func Hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Inert returns s as one line without hidden characters, except the joiners of scripts and emoji. Line breaks and tabs
// become blanks. Other hidden characters (such as the ESC of an ANSI sequence) and invalid UTF-8 become U+FFFD.
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

// InertJSON returns the same JSON with nothing in it that a terminal, an editor or a browser acts on. It escapes <, >
// and &, and hidden characters that one \u escape can write. Invalid UTF-8 becomes U+FFFD. text must be valid JSON, in
// which such characters stand only in strings.
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

// JSON encodes v in one line, without escaping HTML. It panics if v cannot be encoded.
func JSON(v any) []byte {
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	if err := to.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
