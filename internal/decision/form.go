package decision

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// form is a way to write a message so that rules can be compared with it. Every run of what is no part of a word
// becomes one gap.
type form struct {
	gap byte
	// symbols are the bytes of the form that ASCII characters become; 0 where special must look.
	symbols *[256]byte
	// special is the byte that the first character of s becomes, 0 for none, and how many bytes stand for that
	// character.
	special func(s string) (c byte, size int)
}

var (
	// normalForm is R3's: upper case, all but A–Z and 0–9 a gap.
	normalForm = &form{'_', symbols(false, wordSymbol), upperASCII}
	// foldedForm is the same without accents, with entities and escapes read.
	foldedForm = &form{'_', symbols(true, wordSymbol), func(s string) (byte, int) {
		r, size := readRune(s)
		return wordSymbol(fold(r)), size
	}}
	// plainForm is lower case without accents, with entities and escapes read; white space alone is a gap.
	plainForm = &form{' ', symbols(true, fold), func(s string) (byte, int) {
		r, size := readRune(s)
		return fold(r), size
	}}
)

// symbols are those of ASCII. escapes tells that an escape sequence may begin with '&' or '\'.
func symbols[C byte | rune](escapes bool, symbol func(C) byte) *[256]byte {
	var table [256]byte
	for i := range utf8.RuneSelf {
		if c := byte(i); !escapes || c != '&' && c != '\\' {
			table[c] = symbol(C(i))
		}
	}
	return &table
}

// wordSymbol is c in upper case where it is part of a word, else a gap. 0, which is no character, stays.
func wordSymbol(c byte) byte {
	switch {
	case 'a' <= c && c <= 'z':
		return c - 'a' + 'A'
	case 'A' <= c && c <= 'Z', isDigit(c), c == 0:
		return c
	default:
		return '_'
	}
}

// upperASCII is the upper case of the first rune where that is an ASCII letter (ſ is S), else a gap.
func upperASCII(s string) (byte, int) {
	r, size := utf8.DecodeRuneInString(s)
	if u := unicode.ToUpper(r); 'A' <= u && u <= 'Z' {
		return byte(u), size
	}
	return '_', size
}

// write writes text in form f to dst, which has room for len(text) bytes. special tells that some character was not
// one of ASCII that stands for itself: without one, text has the same normal and folded form.
func (f *form) write(dst []byte, text string) (written []byte, special bool) {
	symbols, gap := f.symbols, f.gap
	n, before := 0, byte(0)
	for i := 0; i < len(text); i++ {
		c := symbols[text[i]]
		if c == 0 {
			var size int
			c, size = f.special(text[i:])
			special = special || size > 1 || text[i] >= utf8.RuneSelf
			i += size - 1
			if c == 0 {
				continue
			}
		}
		dst[n] = c
		if c != gap || before != gap {
			n++
		}
		before = c
	}
	return dst[:n], special
}

// part is the part of text that bytes [from, to) of its form f were made of.
func (f *form) part(text string, from, to int) string {
	n, start, before := 0, 0, byte(0)
	for i := 0; i < len(text); {
		c, size := f.symbols[text[i]], 1
		if c == 0 {
			c, size = f.special(text[i:])
		}
		if c != 0 && (c != f.gap || before != c) {
			switch n {
			case to:
				return text[start:i]
			case from:
				start = i
			}
			before = c
			n++
		}
		i += size
	}
	return text[start:]
}

// of is text in form f.
func (f *form) of(text string) string {
	var usual [reachBefore]byte
	room := usual[:]
	if len(text) > len(room) {
		room = make([]byte, len(text))
	}
	written, _ := f.write(room, text)
	return string(written)
}

// foldedName is a phrase, or a literal of a pattern, in the folded form, without gaps at its ends.
func foldedName(s string) string { return strings.Trim(foldedForm.of(s), "_") }
