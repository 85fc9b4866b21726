package text

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Reading is a text as the characters that people see, each with its place in the text.
type Reading struct {
	Chars      []byte  // the ASCII character that each resembles, or Sign, Small or Letter
	From, Till []int32 // the bytes of the text that each stands for
}

// Read reads s, replacing what r held. Entities, escapes, percent-encoded and quoted-printable characters are
// decoded, even if nested. Colour sequences of terminals are dropped. If isNumber is not nil, it keeps a percent sign
// or backslash whose following digits are somebody's number only as they stand.
func (r *Reading) Read(s string, isNumber func(digits string) bool) {
	n, chars := 0, slices.Grow(r.Chars[:0], len(s))[:len(s)]
	from, till := slices.Grow(r.From[:0], len(s)+1)[:len(s)], slices.Grow(r.Till[:0], len(s))[:len(s)]
	for i := 0; i < len(s); {
		c, size := s[i], 1
		if !asIs[c] {
			c, size = readChar(s, i, isNumber)
		}
		if c != 0 {
			chars[n], from[n], till[n] = c, int32(i), int32(i+size)
			n++
		}
		i += size
	}
	r.Chars, r.From, r.Till = chars[:n], from[:n], till[:n]
}

// asIs marks the bytes that are never the beginning of an escape.
var asIs = func() (table [256]bool) {
	for c := byte(' '); c < 0x7f; c++ {
		table[c] = c != '%' && c != '&' && c != '\\' && c != '='
	}
	table['\n'] = true
	return table
}()

func readChar(s string, i int, isNumber func(string) bool) (byte, int) {
	var r rune
	var size int
	switch s[i] {
	case 0x1b:
		return 0, len(ansi.FindString(s[i:]))
	case '%':
		r, size = readPercent(s, i)
	case '=':
		r, size = readQuoted(s, i)
	default:
		r, size = readRune(s[i:])
	}
	if s[i] == '\\' && size > 1 && dividesPath(s, i) {
		return '\\', size - 1
	}
	if isNumber != nil && size > 1 && (s[i] == '%' || s[i] == '\\') {
		digits := i + size
		for isDigit(s[digits-1]) {
			digits--
		}
		if digits < i+size && isNumber(s[digits:]) && !isNumber(s[i+size:]) {
			return s[i], 1
		}
	}
	return likeness(r), size
}

// A user whose name's first letter makes the backslash before it look like an escape: \Users\renata, HSJ\tiago.lima.
var (
	folderOfUsers = regexp.MustCompile(`(?i)[\\/]users$`)
	foldersUser   = regexp.MustCompile(`^\\+[nrt][a-z]`)
	domainsUser   = regexp.MustCompile(`^\\+[nrt][a-z]*\.[a-z]+(?:[^\w.\\]|$)`)
)

// dividesPath reports whether the backslash at s[i:] divides a folder or a domain from a user.
func dividesPath(s string, i int) bool {
	before := at(s, i-1)
	return before|0x20 == 's' && foldersUser.MatchString(s[i:]) && folderOfUsers.MatchString(s[max(0, i-len("/users")):i]) ||
		('A' <= before && before <= 'Z' || isDigit(before)) && domainsUser.MatchString(s[i:])
}

// readPercent reads the percent-encoded character at s[i:]. Such text encodes no letters and digits, so they are
// decoded only beside another encoded character: "100%41" has no A.
func readPercent(s string, i int) (rune, int) {
	from := i + 1
	for range maxNesting {
		if _, ok := hex(s, from+2, 2); !ok || s[from:from+2] != "25" {
			break
		}
		from += 2
	}
	b, ok := hex(s, from, 2)
	end := from + 2
	switch {
	case !ok:
		return '%', 1
	case b >= utf8.RuneSelf:
		return readEncodedRune(s, i, end, s[i:from], b)
	case b == '\n' || b == '\r' || b == '\t':
		return b, end - i
	case b < ' ' || b == 0x7f:
		return '%', 1
	case (isDigit(byte(b)) || isLetter(byte(b))) && !isEncoded(s, end) && !isEncoded(s, i-3):
		return '%', 1
	}
	return b, end - i
}

// isEncoded reports whether a percent-encoded character is at s[i:].
func isEncoded(s string, i int) bool {
	_, ok := hex(s, i+1, 2)
	return ok && at(s, i) == '%'
}

// readEncodedRune reads the rest of a UTF-8 sequence whose first byte is b; sign is what begins its other bytes. An
// incomplete sequence is read as Latin-1.
func readEncodedRune(s string, i, end int, sign string, b rune) (rune, int) {
	raw, width := append(make([]byte, 0, utf8.UTFMax), byte(b)), len(sign)+2
	for next := end; len(raw) < cap(raw) && strings.HasPrefix(s[next:], sign); next += width {
		v, ok := hex(s, next+len(sign), 2)
		if !ok {
			break
		}
		raw = append(raw, byte(v))
	}
	r, size := utf8.DecodeRune(raw)
	if r == utf8.RuneError {
		return b, end - i
	}
	return r, end + width*(size-1) - i
}

// readQuoted reads the letter that is quoted-printable at s[i:], in UTF-8 (=C3=A7) or, between small letters, in
// Latin-1 (=E7).
func readQuoted(s string, i int) (rune, int) {
	b, ok := hex(s, i+1, 2)
	if !ok || b < 0xc0 || s[i+1:i+3] != strings.ToUpper(s[i+1:i+3]) {
		return '=', 1
	}
	r, size := readEncodedRune(s, i, i+3, "=", b)
	if size == 3 && !((isSmall(at(s, i-1)) || at(s, i-3) == '=') && (isSmall(at(s, i+3)) || at(s, i+3) == '=')) {
		return '=', 1
	}
	return r, size
}

func isSmall(c byte) bool { return 'a' <= c && c <= 'z' }

// ansi matches an ESC and the terminal sequence that may follow.
var ansi = regexp.MustCompile(`^\x1b(?:\[[^@-~]{0,29}[@-~])?`)
