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
	// accented are the bytes that the letters of two bytes become that begin with latinLead, by the second; 0 where special
	// must look.
	accented *[256]byte
}

// latinLead begins most accented letters in UTF-8.
const latinLead = 0xc3

var (
	// normalForm is R3's: upper case, all but A–Z and 0–9 a gap.
	normalForm = newForm('_', symbols(false, wordSymbol), upperASCII)
	// foldedForm is the same without accents, with entities and escapes read.
	foldedForm = newForm('_', symbols(true, wordSymbol), func(s string) (byte, int) {
		r, size := readRune(s)
		return wordSymbol(fold(r)), size
	})
	// plainForm is lower case without accents, with entities and escapes read; white space alone is a gap.
	plainForm = newForm(' ', symbols(true, fold), func(s string) (byte, int) {
		r, size := readRune(s)
		return fold(r), size
	})
)

func newForm(gap byte, symbols *[256]byte, special func(string) (byte, int)) *form {
	f := &form{gap, symbols, special, new([256]byte)}
	for second := 0x84; second < 0xc0; second++ { // what begins with Â and Ã may be more than one letter
		f.accented[second], _ = special(string([]byte{latinLead, byte(second)}))
	}
	return f
}

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
func (f *form) write(dst []byte, text string, seams *seams) (written []byte, special bool) {
	n, solid := 0, 1
	for i := 0; i < len(text); {
		n, i, solid = f.writeUsual(dst, n, text, i, solid)
		if i == len(text) {
			break
		}
		c, size := f.unusual(text[i:])
		special = special || size > 1 || text[i] >= utf8.RuneSelf
		i += size
		if c != 0 {
			n, solid = put(dst, n, c, f.gap, solid)
		}
		if solid == 1 && mayBeNormal(at(text, i)) {
			seams.add(n)
		}
	}
	return dst[:n], special
}

// writeUsual writes text from i on to dst from n on, as far as its characters stand for themselves. solid is 0 where the
// symbol before was a gap.
func (f *form) writeUsual(dst []byte, n int, text string, i, solid int) (newN, newI, newSolid int) {
	symbols, gap := f.symbols, f.gap
	for ; i < len(text); i++ {
		c := symbols[text[i]]
		if c == 0 {
			break
		}
		n, solid = put(dst, n, c, gap, solid)
	}
	return n, i, solid
}

// put writes a symbol to dst[n]; a gap behind a gap will be written over. It does without a jump, as nobody can foresee
// where words end.
func put(dst []byte, n int, c, gap byte, before int) (newN, solid int) {
	dst[n] = c
	solid = 1
	if c == gap {
		solid = 0
	}
	return n + (solid | before), solid
}

// mayBeNormal tells whether a character that begins with c may be a letter or digit in the normal form: one of ASCII, or
// ı or ſ, which are so in upper case.
func mayBeNormal(c byte) bool { return c < utf8.RuneSelf || c == "ı"[0] || c == "ſ"[0] }

// seams are the places in a folded text, the first of them, that stand behind a letter with an accent, or the like. There
// a word of the normal form may begin, in which that letter is a gap.
type seams struct {
	places [192]int32
	n      int
}

// add knows a place more; a nil s forgets it.
func (s *seams) add(place int) {
	if s == nil {
		return
	}
	if s.n < len(s.places) {
		s.places[s.n] = int32(place)
	}
	s.n++
}

// all are the places; ok is false where there are more.
func (s *seams) all() (places []int32, ok bool) {
	return s.places[:min(s.n, len(s.places))], s.n <= len(s.places)
}

// unusual is special, in a hurry.
func (f *form) unusual(s string) (c byte, size int) {
	if s[0] == latinLead && len(s) > 1 {
		if c = f.accented[s[1]]; c != 0 {
			return c, 2
		}
	}
	return f.special(s)
}

// part is the part of text that bytes [from, to) of its form f were made of.
func (f *form) part(text string, from, to int) string {
	n, start, before := 0, 0, byte(0)
	for i := 0; i < len(text); {
		c, size := f.symbols[text[i]], 1
		if c == 0 {
			c, size = f.unusual(text[i:])
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
	written, _ := f.write(room, text, nil)
	return string(written)
}

// foldedName is a phrase, or a literal of a pattern, in the folded form, without gaps at its ends.
func foldedName(s string) string { return strings.Trim(foldedForm.of(s), "_") }
