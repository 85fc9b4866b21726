package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"retry-worker/internal/text"
)

// The text is read by logical characters: what a person means by one sign, however it was written.
// "%40", "&#64;", `\u0040` and the full-width sign are all '@'; every Unicode decimal digit is '0' to
// '9'; every space, hyphen and quotation mark is the ASCII one; what is not seen at all (zero-width
// characters, bidi and other controls, combining marks, ANSI sequences) is unseen.

// unseen is the logical character of what has no width on the page.
const unseen rune = -1

// class of a byte decides the way a scanner takes it.
type class uint8

const (
	other  class = iota // a separator as it stands
	letter              // ASCII letter
	digit               // ASCII digit
	joint               // . - _ ' : may stand within an e-mail address
	escape              // may begin a logical character of several bytes
	active              // + ( : < [ $ @ " : begins something of its own
)

var classes = buildClasses()

func buildClasses() (t [256]class) {
	for c := range 256 {
		switch {
		case c >= utf8.RuneSelf, c < ' ' && c != '\t' && c != '\n' && c != '\r', c == 0x7f:
			t[c] = escape
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			t[c] = letter
		case '0' <= c && c <= '9':
			t[c] = digit
		}
	}
	for c, class := range map[string]class{".-_'": joint, `%&\`: escape, `+(:<[$@"`: active} {
		for _, b := range []byte(c) {
			t[b] = class
		}
	}
	return t
}

// charAt returns the logical character at s[i:] and how many bytes it takes; i is within s.
func charAt(s string, i int) (rune, int) {
	switch c := s[i]; {
	case classes[c] != escape:
		return rune(c), 1
	case c == '%':
		return percent(s, i)
	case c == '&':
		return entity(s, i)
	case c == '\\':
		return backslash(s, i)
	case c == 0x1b:
		return unseen, ansi(s, i)
	case c < utf8.RuneSelf:
		return unseen, 1
	}
	r, w := utf8.DecodeRuneInString(s[i:])
	if r == utf8.RuneError && w == 1 {
		r = rune(s[i]) // ISO-8859-1, as TISS messages are
	}
	return logical(r), w
}

// seenAt is charAt past whatever is unseen; unseen and 0 at the end of s.
func seenAt(s string, i int) (rune, int) {
	for start := i; i < len(s); {
		r, w := charAt(s, i)
		i += w
		if r != unseen {
			return r, i - start
		}
	}
	return unseen, 0
}

// until returns where the first logical character of s[i:] begins that ends what stands there; len(s) where none does.
func until(s string, i int, ends func(r rune) bool) int {
	for i < len(s) {
		r, w := charAt(s, i)
		if ends(r) {
			break
		}
		i += w
	}
	return i
}

func isSeen(r rune) bool { return r != unseen }

// logical folds what looks alike.
func logical(r rune) rune {
	switch {
	case r < 0x80:
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f {
			return unseen
		}
		return r
	case 0xc0 <= r && r < 0x300:
		return r
	case 0xff01 <= r && r <= 0xff5e: // full-width ASCII
		return r - 0xfee0
	case unicode.IsDigit(r):
		return '0' + decimal(r)
	case r == 0x85 || r == 0x2028 || r == 0x2029:
		return '\n'
	case unicode.In(r, unicode.Cf, unicode.Cc, unicode.Mn, unicode.Me):
		return unseen
	}
	if ascii, known := lookalikes[r]; known {
		return ascii
	}
	// Digits from one on with a ring, parentheses or a period about them, or below the line.
	for _, one := range [...]rune{'①', '⑴', '⒈', '⓵', '❶', '➀', '➊', '₁'} {
		if one <= r && r < one+9 {
			return '1' + r - one
		}
	}
	switch {
	case unicode.Is(unicode.Zs, r):
		return ' '
	case unicode.Is(unicode.Pd, r):
		return '-'
	}
	return r
}

// lookalikes are read as the ASCII character that they look like.
var lookalikes = map[rune]rune{
	'“': '"', '”': '"', '„': '"', '«': '"', '»': '"', '″': '"', '‘': '\'', '’': '\'', '´': '\'', '′': '\'',
	'·': '.', '•': '.', '․': '.', '‧': '.', '∙': '.', '。': '.', '｡': '.', '⁄': '/', '∕': '/', '−': '-', '﹣': '-', '﹫': '@',
	'⓪': '0', '⓿': '0', '⁰': '0', '₀': '0', '🄋': '0', '🄌': '0', '¹': '1', '²': '2', '³': '3', '⁴': '4', '⁵': '5', '⁶': '6',
	'⁷': '7', '⁸': '8', '⁹': '9',
}

// decimal returns the value of a Unicode decimal digit; its blocks hold tens of them from zero.
func decimal(r rune) (value rune) {
	for unicode.IsDigit(r - value - 1) {
		value++
	}
	return value % 10
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// isCapital reports whether a name may begin with r; a script without cases has capitals only.
func isCapital(r rune) bool { return !unicode.IsLower(r) }

// fold returns the letter without case and accent; 0xff where no ASCII letter stands for it.
func fold(r rune) byte {
	switch {
	case r < 0x80:
		return byte(r) | 0x20
	case r == 'º':
		return 'o'
	case r == 'ª':
		return 'a'
	}
	if folded := text.Fold(r); 'a' <= folded && folded <= 'z' {
		return folded
	}
	return 0xff
}

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
	case b < ' ' || b == 0x7f || isDigit(b) || unicode.IsLetter(b) || isSign(s, i, j):
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

// ansi returns the length of the ANSI sequence that begins with s[i], an ESC.
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

// bareNumber returns what the ASCII digits at the start of s prove to be, and how many they are.
func bareNumber(s string) (kind, int) {
	var d [maxRun]byte
	n := 0
	for n < len(d) && n < len(s) && classes[s[n]] == digit {
		d[n] = s[n] - '0'
		n++
	}
	return verified(d[:n]), n
}

// hexAt returns the value of the n hexadecimal digits at s[i:], and whether there are so many.
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
