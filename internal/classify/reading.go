package classify

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"retry-worker/internal/text"
)

// reading is a message as people read it: in lower case without accents, with entities and escapes read.
type reading struct {
	// plain has one byte for a character, and a blank for a run of white space.
	plain []byte
	// offsets of the characters of plain in the message, and of its end.
	offsets []int32
	tokens  []token
}

// token is a word, or an address, whose parts say nothing.
type token struct {
	// from and to are its place in plain.
	from, to int
	// before is what stands between it and the word before it.
	before    gap
	isAddress bool
}

// gap is the strongest of what stands between two words.
type gap uint8

const (
	space  gap = iota // a blank, a hyphen, a quotation mark
	pause             // a comma, a colon, a bracket
	clause            // the end of a sentence or of a line, or a semicolon
)

// read reads a message anew.
func (r *reading) read(message string) {
	r.plain, r.tokens = slices.Grow(r.plain[:0], len(message)), r.tokens[:0]
	r.offsets = slices.Grow(r.offsets[:0], len(message)+1)
	open, before := false, clause // open tells that a word goes on
	for i, size := 0, 1; i < len(message); i += size {
		c, isBreak := ascii[message[i]], false
		if size = 1; c == 0 {
			if c, size, isBreak = readChar(message[i:]); c == 0 {
				continue // an accent that stands by itself
			}
		}
		at := len(r.plain)
		switch isWord := symbols[c] != gapSymbol; {
		case isWord && !open:
			r.tokens = append(r.tokens, token{from: at, before: before})
			open, before = true, space
		case !isWord:
			if open {
				r.tokens[len(r.tokens)-1].to, open = at, false
			}
			if before = max(before, gapOf(c)); isBreak || c == '.' && r.endsSentence(message[i+size:]) {
				before = clause
			}
		}
		if c != ' ' || at == 0 || r.plain[at-1] != ' ' {
			r.plain, r.offsets = append(r.plain, c), append(r.offsets, int32(i))
		}
	}
	if open {
		r.tokens[len(r.tokens)-1].to = len(r.plain)
	}
	r.offsets = append(r.offsets, int32(len(message)))
	r.joinAddresses()
}

// ascii has the bytes that stand for themselves, folded; 0 for the others.
var ascii = func() (table [256]byte) {
	for c := range byte(utf8.RuneSelf) {
		if c != '&' && c != '\\' && c != '\n' {
			table[c] = text.Fold(rune(c))
		}
	}
	return table
}()

// readChar returns the first character of s, folded, and how many bytes stand for it; 0 for one that is not seen.
func readChar(s string) (c byte, size int, isBreak bool) {
	char, size := text.Rune(s)
	return text.Fold(char), size, char == '\n'
}

func gapOf(c byte) gap {
	switch c {
	case ';', '|', '!', '?':
		return clause
	case ',', ':', '(', ')', '[', ']', '{', '}', '=', '<', '>', '.':
		return pause
	}
	return space
}

// abbreviations end in a full stop that ends no sentence.
var abbreviations = set("n nr num art sr sra dr dra cod ref")

// endsSentence reports whether a full stop before rest does.
func (r *reading) endsSentence(rest string) bool {
	if rest != "" && rest[0] > ' ' && rest[0] != '"' && rest[0] != '<' {
		return false
	}
	last := len(r.tokens) - 1
	return last < 0 || !abbreviations[r.word(last)]
}

// joinAddresses makes one token of the words of each URL and each e-mail address.
func (r *reading) joinAddresses() {
	if !bytes.ContainsAny(r.plain, "@/") {
		return
	}
	joins := func(a, b token) bool { return b.from == a.to+1 && strings.IndexByte("._+-", r.plain[a.to]) >= 0 }
	all, rest := r.tokens[:0], r.tokens
	for len(rest) > 0 {
		t := rest[0]
		rest = rest[1:]
		switch behind := r.plain[t.to:]; {
		case bytes.HasPrefix(behind, []byte("://")):
			length := bytes.IndexAny(behind, " \"'<>()[]{}|;,")
			if length < 0 {
				length = len(behind)
			}
			for end := t.to + length; len(rest) > 0 && rest[0].from < end; rest = rest[1:] {
				t.to, t.isAddress = rest[0].to, true
			}
		case len(rest) > 0 && behind[0] == '@' && rest[0].from == t.to+1:
			for ; len(all) > 0 && joins(all[len(all)-1], t); all = all[:len(all)-1] {
				t.from, t.before = all[len(all)-1].from, all[len(all)-1].before
			}
			t.to, t.isAddress = rest[0].to, true
			for rest = rest[1:]; len(rest) > 0 && joins(t, rest[0]); rest = rest[1:] {
				t.to = rest[0].to
			}
		}
		all = append(all, t)
	}
	r.tokens = all
}

// word returns the i-th word; empty outside of the message and for an address.
func (r *reading) word(i int) string {
	if i < 0 || i >= len(r.tokens) || r.tokens[i].isAddress {
		return ""
	}
	return string(r.plain[r.tokens[i].from:r.tokens[i].to])
}

// gapBefore returns what stands between the i-th word and the one before it.
func (r *reading) gapBefore(i int) gap {
	if i <= 0 || i >= len(r.tokens) {
		return clause
	}
	return r.tokens[i].before
}
