package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Inert returns s as one line in which every character is printable. Line breaks and tabs become blanks; other controls
// (an ANSI sequence's ESC among them), bidi controls, characters of no width and bytes that are no UTF-8 become U+FFFD.
func Inert(s string) string {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return strings.Map(inertRune, s)
		}
	}
	return s
}

func inertRune(r rune) rune {
	switch {
	case ' ' <= r && r < 0x7f:
		return r
	case '\t' <= r && r <= '\r', r == 0x85, r == 0x2028, r == 0x2029:
		return ' '
	case r == '\u200c', r == '\u200d': // the joiners of scripts and emoji
		return r
	case r < 0xa0, r == 0xad, r >= 0x300 && unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp):
		return utf8.RuneError
	}
	return r // U+FFFD for a byte that is no UTF-8
}
