package redact

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	ellipsis           = "…"
	longestPlaceholder = len("[BIRTHDATE]")
)

// Text returns s without personal data: a placeholder that names the kind stands for each datum. See the package
// comment for what is taken and what never is. Text(Text(s)) is Text(s); it is valid UTF-8 if s is; it
// takes time in proportion to len(s) and allocates only where there is something to take.
func Text(s string) string {
	return redacted(s, math.MaxInt)
}

// Line is Text(s) as one line of at most max bytes for a sink that holds lines: a log field, an incident's message.
// Line breaks and tabs become blanks; other controls (an ANSI sequence's ESC among them), bidi controls, characters of
// no width and bytes that are no UTF-8 become U+FFFD. What is too long is cut at the end of a character, never within
// a placeholder, and ends in "…"; where not even that fits, nothing is left. The cut comes after the redaction, so no
// part of a datum is left before it. Of a long s only the beginning is read.
func Line(s string, max int) string {
	if max <= 0 {
		return ""
	}
	stop := math.MaxInt
	if max < math.MaxInt/4 {
		stop = 3*max + 1 // a line break of three bytes becomes one blank
	}
	return cut(inert(redacted(s, stop)), max)
}

// WithoutKinds returns s, which Text or Line made, with # in place of each placeholder: a datum's kind may be a matter
// of its digits.
func WithoutKinds(s string) string { return kinds.Replace(s) }

var kinds = func() *strings.Replacer {
	var pairs []string
	for _, m := range placeholders[cpf:] {
		pairs = append(pairs, m, "#")
	}
	return strings.NewReplacer(pairs...)
}()

// inert makes every character of s printable.
func inert(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune("\n\r\t\v\f\u0085\u2028\u2029", r):
			return ' '
		case isActive(r):
			return utf8.RuneError
		}
		return r // U+FFFD for a byte that is no UTF-8
	}, s)
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
	from := end - min(end, longestPlaceholder-1)
	if open := strings.LastIndexByte(s[from:end], '['); open >= 0 {
		open += from
		if k := placeholderAt(s[open:]); k != none && open+len(placeholders[k]) > end {
			end = open
		}
	}
	return s[:end] + ellipsis
}
