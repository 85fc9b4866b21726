package redact

import (
	"strings"
	"unicode/utf8"

	"retry-worker/internal/text"
)

const (
	maxNesting   = 4  // how often an escape may be escaped again: %252522, &amp;amp;quot;
	maxBackslash = 64 // of a run read at once
	maxANSI      = 32 // bytes of one ANSI sequence
)

// percent reads a percent-encoded character. Letters and digits stand for themselves in such text, so
// "100%41" is no 'A'; and a '%' that stands before somebody's number is a percent sign.
func percent(s string, i int) (rune, int) {
	j := i + 1
	for range maxNesting {
		if _, ok := hexAt(s, j+2, 2); !ok || !strings.HasPrefix(s[j:], "25") {
			break
		}
		j += 2
	}
	b, ok := hexAt(s, j, 2)
	if !ok {
		return '%', 1
	}
	j += 2
	switch {
	case b >= utf8.RuneSelf:
		return percentRune(s, i, j, b)
	case b == '\n' || b == '\r' || b == '\t':
		return '\n', j - i
	case b < ' ' || b == 0x7f || isDigit(b) || isLetter(b) || isSign(s, i, j):
		return '%', 1
	}
	return b, j - i
}

// percentRune reads the rest of a UTF-8 sequence whose first byte is b; alone it is ISO-8859-1.
func percentRune(s string, i, j int, b rune) (rune, int) {
	raw := [utf8.UTFMax]byte{byte(b)}
	n, end := 1, j
	for ; n < len(raw) && end < len(s) && s[end] == '%'; n++ {
		v, ok := hexAt(s, end+1, 2)
		if !ok {
			break
		}
		raw[n] = byte(v)
		end += 3
	}
	r, w := utf8.DecodeRune(raw[:n])
	if r == utf8.RuneError {
		return logical(b), j - i
	}
	return logical(r), j + 3*(w-1) - i
}

// backslash reads an escape of JSON, Go or Java, itself escaped any number of times.
func backslash(s string, i int) (rune, int) {
	j := i
	for j < len(s) && s[j] == '\\' && j-i < maxBackslash {
		j++
	}
	if j == len(s) {
		return '\\', j - i
	}
	switch s[j] {
	case '"', '\'', '/':
		return rune(s[j]), j + 1 - i
	case 'n', 'r', 't':
		return '\n', j + 1 - i
	case 'u':
		return escaped(s, i, j+1, 4)
	case 'x':
		return escaped(s, i, j+1, 2)
	}
	return '\\', j - i
}

func escaped(s string, i, j, digits int) (rune, int) {
	v, ok := hexAt(s, j, digits)
	if !ok || isSign(s, j-1, j+digits) {
		return '\\', j - 1 - i
	}
	return logical(v), j + digits - i
}

// entity reads an entity of XML or HTML.
func entity(s string, i int) (rune, int) {
	j := i + 1
	for range maxNesting {
		if !strings.HasPrefix(s[j:], "amp;") {
			break
		}
		j += len("amp;")
	}
	name, _, found := strings.Cut(s[j:min(j+10, len(s))], ";")
	if r := text.Entity(name); found && r != 0 {
		return logical(r), j + len(name) + 1 - i
	}
	return '&', j - i
}

// ansi is the length of the ANSI sequence that begins with s[i], an ESC.
func ansi(s string, i int) int {
	if i+1 == len(s) || s[i+1] != '[' {
		return 1
	}
	for j := i + 2; j < len(s) && j < i+maxANSI; j++ {
		if 0x40 <= s[j] && s[j] <= 0x7e {
			return j + 1 - i
		}
	}
	return 1
}

// isSign reports whether the sign at s[i] is no escape that ends at end: the ASCII digits behind it are,
// as they stand, somebody's number, and those behind the escape would not be.
func isSign(s string, i, end int) bool {
	k, _ := bareNumber(s[i+1:])
	if k == none {
		return false
	}
	k, n := bareNumber(s[end:])
	return k == none && n != 11
}

// bareNumber is what the ASCII digits at the start of s prove to be, and how many they are.
func bareNumber(s string) (kind, int) {
	var d [maxRun]byte
	n := 0
	for n < len(d) && n < len(s) && classes[s[n]] == digit {
		d[n] = s[n] - '0'
		n++
	}
	return verified(d[:n]), n
}

// hexAt is the value of the n hexadecimal digits at s[i:], and whether there are so many.
func hexAt(s string, i, n int) (v rune, ok bool) {
	if i+n > len(s) {
		return 0, false
	}
	for _, c := range []byte(s[i : i+n]) {
		d := hexValue(c)
		if d > 15 {
			return 0, false
		}
		v = v<<4 | d
	}
	return v, true
}

// hexValue is above 15 where c is no hexadecimal digit.
func hexValue(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10
	}
	return 16
}
