// Package text reads error texts as people do: without case, accents, entities, escapes and damaged encodings.
package text

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// The gaps between words, the weakest first. One gap stands for a run of whatever is no part of a word, the strongest
// in it.
const (
	Space  = ' ' // a space, a hyphen, a quotation mark
	Pause  = ',' // a comma, a colon, a bracket
	Clause = '.' // the end of a sentence or of a line, or a semicolon
)

// special marks a byte that may begin a character of several bytes.
const special = 1

// wordBytes are the bytes of folded words that ASCII characters become.
var wordBytes = func() (table [256]byte) {
	for i := range table {
		c := byte(i)
		switch {
		case c >= utf8.RuneSelf || c == '&' || c == '\\':
			table[i] = special
		default:
			table[i] = wordByte(foldASCII(c))
		}
	}
	return table
}()

func foldASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// wordByte returns c where it is part of a word, else the gap that it makes. A full stop ends a sentence only before
// a space, which Words checks.
func wordByte(c byte) byte {
	switch c {
	case '\n', ';', '|', '!', '?':
		return Clause
	case ',', ':', '(', ')', '[', ']', '{', '}', '=', '<', '>', '.':
		return Pause
	}
	if isWordByte(c) {
		return c
	}
	return Space
}

// Words appends the words of s to dst, in lower case without accents and with entities and escapes read, with one gap
// between two of them and a Clause at either end. Where offsets is not nil, it gets the place in s of each byte of dst.
// plain reports whether s holds nothing but ASCII characters that stand for themselves.
func Words(dst []byte, s string, offsets *[]int32) (words []byte, plain bool) {
	dst, plain = append(slices.Grow(dst, len(s)+2), Clause), true
	mark := func(i int) {
		if offsets != nil {
			*offsets = append(*offsets, int32(i))
		}
	}
	mark(0)
	for i := 0; i < len(s); {
		c, size := wordBytes[s[i]], 1
		if c == special {
			if c, size = wordRune(s[i:]); size > 1 || s[i] >= utf8.RuneSelf {
				plain = false
			}
		}
		switch last := len(dst) - 1; {
		case c > Clause:
			dst = append(dst, c)
			mark(i)
		case c == 0: // an accent that stands by itself
		case dst[last] > Clause:
			dst = append(dst, sentenceEnd(c, s, i))
			mark(i)
		default:
			dst[last] = max(dst[last], sentenceEnd(c, s, i))
		}
		i += size
	}
	if last := len(dst) - 1; last > 0 && dst[last] <= Clause {
		dst[last] = Clause
		return dst, plain
	}
	mark(len(s))
	return append(dst, Clause), plain
}

// wordRune is wordByte of the first character of s, 0 for none, and how many bytes stand for it.
func wordRune(s string) (byte, int) {
	r, size := Rune(s)
	if r == '\n' {
		return Clause, size
	}
	c := Fold(r)
	if c == 0 {
		return 0, size
	}
	return wordByte(c), size
}

// sentenceEnd returns the gap c, a Clause where s[i] is a full stop that ends a sentence.
func sentenceEnd(c byte, s string, i int) byte {
	if s[i] == '.' && (i+1 == len(s) || s[i+1] <= ' ' || s[i+1] == '"' || s[i+1] == '<') {
		return Clause
	}
	return c
}

// Normal appends R3's normal form of s to dst, in lower case: every run of what is in upper case neither A–Z nor 0–9 is
// one gap. offsets is as in Words.
func Normal(dst []byte, s string, offsets *[]int32) []byte {
	for i := 0; i < len(s); {
		c, size := s[i], 1
		if c >= utf8.RuneSelf {
			var r rune
			r, size = utf8.DecodeRuneInString(s[i:])
			c = byte(min(unicode.ToUpper(r), utf8.RuneSelf)) // ſ is S
		}
		if c = foldASCII(c); !isWordByte(c) {
			c = Space
		}
		if n := len(dst); c != Space || n == 0 || dst[n-1] != Space {
			dst = append(dst, c)
			if offsets != nil {
				*offsets = append(*offsets, int32(i))
			}
		}
		i += size
	}
	return dst
}

func isWordByte(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

// Plain returns s in lower case without accents, with entities and escapes read and single spaces for white space.
// offsets is as in Words.
func Plain(s string, offsets *[]int32) string {
	plain := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		r, size := Rune(s[i:])
		c := Fold(r)
		if n := len(plain); c != 0 && (c != ' ' || n == 0 || plain[n-1] != ' ') {
			plain = append(plain, c)
			if offsets != nil {
				*offsets = append(*offsets, int32(i))
			}
		}
		i += size
	}
	return string(plain)
}
