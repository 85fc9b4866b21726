package decision

import (
	"html"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// This file makes of a message the forms that rules are compared with:
//
//   - normalised (R3): upper case, every run of characters outside A–Z and 0–9 one '_';
//   - plain: lower case, accents folded, HTML entities and \u escapes read, white space single;
//   - folded: the normalised form of the plain one.
//
// Of an ASCII message without entities and escapes the normalised and the folded form are the same.

// symbol is what a byte is in the normalised form; 0 where the rune must be looked at.
var symbol = func() (table [256]byte) {
	for i := range utf8.RuneSelf {
		switch c := byte(i); {
		case 'a' <= c && c <= 'z':
			table[c] = c - 'a' + 'A'
		case 'A' <= c && c <= 'Z', isDigit(c):
			table[c] = c
		default:
			table[c] = '_'
		}
	}
	return table
}()

// normalise writes text's normalised form to dst, which has room for len(text) bytes, and returns its length.
func normalise(dst []byte, text string) int {
	n, before := 0, byte(0)
	for i := 0; i < len(text); {
		c, size := symbol[text[i]], 1
		if c == 0 {
			c, size = upperASCII(text[i:])
		}
		i += size
		if c == '_' && before == '_' {
			continue
		}
		dst[n], before = c, c
		n++
	}
	return n
}

// upperASCII is the upper case of the first rune where that is an ASCII letter (ſ is S), else '_', and the rune's
// size.
func upperASCII(s string) (byte, int) {
	r, size := utf8.DecodeRuneInString(s)
	if u := unicode.ToUpper(r); u < utf8.RuneSelf {
		return symbol[u], size
	}
	return '_', size
}

// unnormalised is the part of text that [from, to) of its normalised form was made of.
func unnormalised(text string, from, to int) (start, end int) {
	n, before := 0, byte(0)
	for i := 0; i < len(text); {
		c, size := symbol[text[i]], 1
		if c == 0 {
			c, size = upperASCII(text[i:])
		}
		if c != '_' || before != '_' {
			switch n {
			case from:
				start = i
			case to:
				return start, i
			}
			n++
		}
		before = c
		i += size
	}
	return start, len(text)
}

// needsFolding tells whether text's folded form may differ from its normalised one.
func needsFolding(text string) bool {
	for i := range len(text) {
		if c := text[i]; c >= utf8.RuneSelf || c == '&' || c == '\\' && i+1 < len(text) && text[i+1] == 'u' {
			return true
		}
	}
	return false
}

// plain is a message's plain form, and where in the message each of its bytes stands.
type plain struct {
	text []byte
	at   []int32
}

// maxPlainBytes of a message have a plain form: patterns cost more than codes, and what is behind that much text
// does not say more.
const maxPlainBytes = 64 << 10

func plainOf(text string) plain {
	text = text[:min(len(text), maxPlainBytes)]
	p := plain{make([]byte, 0, len(text)), make([]int32, 0, len(text))}
	for i := 0; i < len(text); {
		r, size := readRune(text[i:])
		c := fold(r)
		space := c == ' ' && len(p.text) > 0 && p.text[len(p.text)-1] == ' '
		if c != 0 && !space {
			p.text, p.at = append(p.text, c), append(p.at, int32(i))
		}
		i += size
	}
	return p
}

// readRune is the first character of s, which is not empty, and how many bytes stand for it: an HTML entity, a \u
// escape of JSON, and UTF-8 that was taken for Latin-1 or Windows-1252 are one character.
func readRune(s string) (rune, int) {
	c := s[0]
	switch {
	case c == '&':
		if end := strings.IndexByte(s[:min(len(s), 12)], ';'); end > 0 {
			if decoded := html.UnescapeString(s[:end+1]); decoded != s[:end+1] {
				r, _ := utf8.DecodeRuneInString(decoded)
				return r, end + 1
			}
		}
	case c == '\\' && len(s) >= 6 && s[1] == 'u':
		if n, err := strconv.ParseUint(s[2:6], 16, 16); err == nil {
			return rune(n), 6
		}
	case c >= utf8.RuneSelf:
		return readMojibake(s)
	}
	return rune(c), 1
}

// windows1252 are the characters that Windows-1252 has where Latin-1 has controls, as far as an accented letter's
// second UTF-8 byte can be one of them.
const windows1252 = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ"

func readMojibake(s string) (rune, int) {
	r, size := utf8.DecodeRuneInString(s)
	if r != 'Ã' && r != 'Â' || len(s) == size {
		return r, size
	}
	second, more := utf8.DecodeRuneInString(s[size:])
	if second < 0x80 || second > 0xbf {
		place := strings.IndexRune(windows1252, second)
		if place < 0 {
			return r, size
		}
		second = 0x80 + rune(utf8.RuneCountInString(windows1252[:place]))
	}
	if r == 'Ã' {
		return 0xc0 | second&0x3f, size + more
	}
	return second, size + more
}

// latin folds U+00C0 to U+00FF.
const latin = "aaaaaaaceeeeiiiidnooooo ouuuuytsaaaaaaaceeeeiiiidnooooo ouuuuyty"

// fold is the lower-case ASCII character that r is without its accent, ' ' for white space and for what has none, and
// 0 for an accent that stands by itself.
func fold(r rune) byte {
	switch {
	case 'A' <= r && r <= 'Z':
		return byte(r) + 'a' - 'A'
	case r > ' ' && r < 0x7f:
		return byte(r)
	case 0xc0 <= r && r <= 0xff:
		return latin[r-0xc0]
	case 0x300 <= r && r <= 0x36f:
		return 0
	}
	if l := unicode.ToLower(r); l > ' ' && l < 0x7f {
		return byte(l)
	}
	return ' '
}

// foldedName is a phrase, or a literal of a pattern, in the folded form, without separators at its ends.
func foldedName(s string) string {
	p := plainOf(s)
	folded := make([]byte, len(p.text))
	n := normalise(folded, string(p.text))
	return strings.Trim(string(folded[:n]), "_")
}
