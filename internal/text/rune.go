// Package text reads error texts as people do: without case, accents, entities, escapes and damaged encodings.
package text

import (
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Rune returns the first character of s, which is not empty, and how many bytes stand for it: an HTML entity, an escape
// of JSON, and UTF-8 that was taken for Latin-1 or Windows-1252 are one character.
func Rune(s string) (rune, int) {
	switch c := s[0]; {
	case c == '&':
		return readEntity(s)
	case c == '\\':
		return readEscape(s)
	case c == 0xc3 && 0x84 <= at(s, 1) && at(s, 1) < 0xc0:
		return 0xc0 | rune(s[1]&0x3f), 2 // most accented letters, in a hurry; Â and Ã, which may be more, are read below
	case c >= utf8.RuneSelf:
		return readMojibake(s)
	default:
		return rune(c), 1
	}
}

// longestEntity in bytes: that of the names of accented letters, and more.
const longestEntity = 12

func readEntity(s string) (rune, int) {
	name, _, found := strings.Cut(s[1:min(len(s), longestEntity)], ";")
	if r := Entity(name); found && r != 0 {
		return r, len(name) + 2
	}
	return '&', 1
}

// Entity returns the character that an HTML entity of that name stands for, "eacute" or "#64"; 0 for none.
func Entity(name string) rune {
	decoded := html.UnescapeString("&" + name + ";")
	r, size := utf8.DecodeRuneInString(decoded)
	if size != len(decoded) { // none, or one without its semicolon and more behind it
		return 0
	}
	return r
}

func readEscape(s string) (rune, int) {
	switch at(s, 1) {
	case 'n', 'r':
		return '\n', 2
	case 't':
		return '\t', 2
	case 'u':
		if n, err := strconv.ParseUint(s[2:min(len(s), 6)], 16, 16); err == nil && len(s) >= 6 {
			return rune(n), 6
		}
	}
	return '\\', 1
}

// windows1252 are the characters that Windows-1252 has where Latin-1 has controls, from 0x80 on.
var windows1252 = []rune("€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ")

// readDamaged guesses the letter that U+FFFD took the place of: the accented ones that Portuguese has most of, ã and á,
// or the ç before another one (autoriza��o). A byte that is no UTF-8 is a letter of Latin-1, in which TISS messages
// are. Only before a letter there was one.
func readDamaged(s string, size int) (rune, int) {
	next := at(s, size)
	switch {
	case next < utf8.RuneSelf && !isLetter(next):
		return ' ', size
	case size == 1:
		return rune(s[0]), 1
	case next >= utf8.RuneSelf:
		return 'c', size
	default:
		return 'a', size
	}
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// readMojibake returns the first character of s, or the one whose two bytes of UTF-8 became the first two: Ã© for é.
func readMojibake(s string) (rune, int) {
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError {
		return readDamaged(s, size)
	}
	if r != 'Ã' && r != 'Â' || len(s) == size {
		return r, size
	}
	second, more := utf8.DecodeRuneInString(s[size:])
	if second < 0x80 || second > 0xbf {
		place := slices.Index(windows1252, second)
		if place < 0 {
			return r, size
		}
		second = 0x80 + rune(place)
	}
	if r == 'Ã' {
		second += 0x40
	}
	return second, size + more
}

// latin folds U+00C0 to U+017F.
const latin = "aaaaaaaceeeeiiii" + "dnooooo ouuuuyts" + "aaaaaaaceeeeiiii" + "dnooooo ouuuuyty" +
	"aaaaaaccccccccdd" + "ddeeeeeeeeeegggg" + "gggghhhhiiiiiiii" + "iiiijjkkklllllll" +
	"lllnnnnnnnnnoooo" + "oooorrrrrrssssss" + "ssttttttuuuuuuuu" + "uuuuwwyyyzzzzzzs"

// Fold returns the lower-case ASCII character that r is without its accent, ' ' for white space and for what has none,
// and 0 for an accent that stands by itself.
func Fold(r rune) byte {
	switch {
	case 'A' <= r && r <= 'Z':
		return byte(r) + 'a' - 'A'
	case r > ' ' && r < 0x7f:
		return byte(r)
	case 0xc0 <= r && r < 0xc0+rune(len(latin)):
		return latin[r-0xc0]
	case 0x300 <= r && r <= 0x36f, unicode.Is(unicode.Cf, r):
		return 0
	case r == '\u212a': // the sign for kelvin
		return 'k'
	}
	return ' '
}

// at returns the byte at i, 0 outside s.
func at(s string, i int) byte {
	if i < 0 || i >= len(s) {
		return 0
	}
	return s[i]
}
