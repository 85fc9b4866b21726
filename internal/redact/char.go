package redact

import (
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
	lead                // + and ( : may open a telephone number
	escape              // may begin a logical character of several bytes
	active              // : < [ $ @ : begins something of its own
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
	for c, class := range map[string]class{".-_'": joint, "+(": lead, `%&\`: escape, ":<[$@": active} {
		for _, b := range []byte(c) {
			t[b] = class
		}
	}
	return t
}

// charAt is the logical character at s[i:] and how many bytes it takes; i is within s.
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
	return lookalike(r)
}

func lookalike(r rune) rune {
	switch r {
	case '“', '”', '„', '«', '»', '″':
		return '"'
	case '‘', '’', '´', '′':
		return '\''
	case '·', '•', '․', '‧', '∙', '。', '｡':
		return '.'
	case '⁄', '∕':
		return '/'
	case '−', '﹣':
		return '-'
	case '﹫':
		return '@'
	}
	switch {
	case unicode.Is(unicode.Zs, r):
		return ' '
	case unicode.Is(unicode.Pd, r):
		return '-'
	}
	return r
}

// decimal is the value of a Unicode decimal digit; its blocks hold tens of them from zero.
func decimal(r rune) (value rune) {
	for unicode.IsDigit(r - value - 1) {
		value++
	}
	return value % 10
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

func isLetter(r rune) bool {
	switch {
	case r < 0x80:
		return 'a' <= r|0x20 && r|0x20 <= 'z' && r > 0
	case 0xc0 <= r && r < 0x250:
		return r != '×' && r != '÷'
	}
	return unicode.IsLetter(r)
}

// isCapital reports whether a name may begin with r; a script without cases has capitals only.
func isCapital(r rune) bool { return !unicode.IsLower(r) }

// fold is the letter without case and accent; 0xff where no ASCII letter stands for it.
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
