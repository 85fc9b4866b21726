package redact

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	ellipsis    = "…"
	replacement = string(utf8.RuneError)
	longestMark = len("[BIRTHDATE]")
)

// Line is Text(s) as one line of at most max bytes for a sink that holds lines: a log field, an
// incident's message. Line breaks and tabs become blanks; other controls (an ANSI sequence's ESC among
// them), bidi controls, characters of no width and bytes that are no UTF-8 become U+FFFD. What is too
// long is cut at the end of a character, never within a mark, and ends in "…"; where not even that
// fits, nothing is left. The cut comes after the redaction, so no part of a datum is left before it. Of
// a long s only the beginning is read.
func Line(s string, max int) string {
	if max <= 0 {
		return ""
	}
	sc := scanner{in: s, stop: math.MaxInt}
	if max < math.MaxInt/4 {
		sc.stop = 3*max + 1 // a line break of three bytes becomes one blank
	}
	sc.scan()
	return cut(inert(sc.edits.apply(s[:sc.pos])), max)
}

// inert makes every character of s printable.
func inert(s string) string {
	if isPrintable(s) || !strings.ContainsFunc(s, isActive) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(replacement))
	for i := 0; i < len(s); {
		r, w := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\n' || r == '\r' || r == '\t' || r == '\v' || r == '\f' || r == 0x85 || r == 0x2028 || r == 0x2029:
			b.WriteByte(' ')
		case isActive(r):
			b.WriteString(replacement)
		default:
			b.WriteRune(r) // U+FFFD for a byte that is no UTF-8
		}
		i += w
	}
	return b.String()
}

// isPrintable reports whether s is nothing but printable ASCII.
func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// isActive reports whether r does something to what shows it. The joiners of scripts and emoji may.
func isActive(r rune) bool {
	switch {
	case r < 0x7f:
		return r < ' '
	case r < 0xa0:
		return true
	case r < 0xad || 0xad < r && r < 0x300:
		return false
	case r == '\u200c' || r == '\u200d':
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// cut shortens s to max bytes.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	end := max - len(ellipsis)
	if end < 0 {
		return ""
	}
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	from := end - min(end, longestMark-1)
	if open := strings.LastIndexByte(s[from:end], '['); open >= 0 {
		open += from
		if k := markAt(s[open:]); k != none && open+len(marks[k]) > end {
			end = open
		}
	}
	return s[:end] + ellipsis
}
