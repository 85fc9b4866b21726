package text

import (
	"bytes"
	"strings"
	"sync"
)

// Words is a text as people read it: in lower case without accents, with entities and escapes decoded.
type Words struct {
	// Text is the original text.
	Text string
	// Plain has one byte for each character, and one blank for each run of white space.
	Plain []byte
	// Offsets holds the place in Text of each character of Plain, and of its end.
	Offsets []int32
	All     []Word
	reading Reading // owns the memory of Plain and Offsets
}

// Word is one word, or one whole address, which counts as unreadable.
type Word struct {
	// From and To are its place in Plain.
	From, To int
	// Before is the gap between this word and the one before.
	Before    Gap
	IsAddress bool
}

// Gap is the strongest separator between two words.
type Gap uint8

// The gaps, the weakest first.
const (
	Space  Gap = iota // a blank, a hyphen, a quotation mark
	Pause             // a comma, a colon, a bracket
	Clause            // the end of a sentence or of a line, or a semicolon
)

// mostKept is the longest text whose memory is recycled.
const mostKept = 64 << 10

var words = sync.Pool{New: func() any { return new(Words) }}

// ReadWords reads a text. The caller frees the result.
func ReadWords(s string) *Words {
	w := words.Get().(*Words)
	w.read(s)
	return w
}

// Free recycles the memory of w, which must not be used afterwards.
func (w *Words) Free() {
	if w.Text = ""; cap(w.Plain) <= mostKept {
		words.Put(w)
	}
}

func (w *Words) read(message string) {
	w.reading.Read(message, nil)
	chars, from := w.reading.Chars, w.reading.From
	w.Text, w.Plain, w.Offsets, w.All = message, chars[:0], from[:0], w.All[:0]
	open, before := false, Clause // whether a word goes on
	for i, char := range chars {
		c, at := folded[char], len(w.Plain)
		switch isWord := isWordByte(c); {
		case isWord && !open:
			w.All = append(w.All, Word{From: at, Before: before})
			open, before = true, Space
		case !isWord:
			if open {
				w.All[len(w.All)-1].To, open = at, false
			}
			if before = max(before, gapOf(c)); char == '\n' || c == '.' && w.endsSentence(chars[i+1:]) {
				before = Clause
			}
		}
		if c != ' ' || at == 0 || w.Plain[at-1] != ' ' {
			w.Plain, w.Offsets = append(w.Plain, c), append(w.Offsets, from[i])
		}
	}
	if open {
		w.All[len(w.All)-1].To = len(w.Plain)
	}
	w.Offsets = append(w.Offsets, int32(len(message)))
	w.joinAddresses()
}

// folded maps a character of a Reading to lower case, and to a blank if it resembles no ASCII character.
var folded = func() (table [256]byte) {
	for c := range table {
		switch {
		case c >= Sign || c <= ' ':
			table[c] = ' '
		case 'A' <= c && c <= 'Z':
			table[c] = byte(c) | 0x20
		default:
			table[c] = byte(c)
		}
	}
	return table
}()

func isWordByte(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

func gapOf(c byte) Gap {
	switch c {
	case ';', '|', '!', '?':
		return Clause
	case ',', ':', '(', ')', '[', ']', '{', '}', '=', '<', '>', '.':
		return Pause
	}
	return Space
}

// abbreviations may be followed by a full stop that ends no sentence.
var abbreviations = map[string]bool{"n": true, "no": true, "nr": true, "num": true, "art": true, "sr": true, "sra": true,
	"dr": true, "dra": true, "cod": true, "ref": true}

// endsSentence reports whether the full stop before rest ends a sentence.
func (w *Words) endsSentence(rest []byte) bool {
	if len(rest) > 0 && rest[0] > ' ' && rest[0] != '"' && rest[0] != '<' {
		return false
	}
	last := len(w.All) - 1
	return last < 0 || !abbreviations[w.At(last)]
}

// joinAddresses joins the words of each URL and each e-mail address into one Word.
func (w *Words) joinAddresses() {
	if !bytes.ContainsAny(w.Plain, "@/") {
		return
	}
	joins := func(a, b Word) bool { return b.From == a.To+1 && strings.IndexByte("._+-", w.Plain[a.To]) >= 0 }
	all, rest := w.All[:0], w.All
	for len(rest) > 0 {
		t := rest[0]
		rest = rest[1:]
		switch behind := w.Plain[t.To:]; {
		case bytes.HasPrefix(behind, []byte("://")):
			length := bytes.IndexAny(behind, " \"'<>()[]{}|;,")
			if length < 0 {
				length = len(behind)
			}
			for end := t.To + length; len(rest) > 0 && rest[0].From < end; rest = rest[1:] {
				t.To, t.IsAddress = rest[0].To, true
			}
		case len(rest) > 0 && behind[0] == '@' && rest[0].From == t.To+1:
			for ; len(all) > 0 && joins(all[len(all)-1], t); all = all[:len(all)-1] {
				t.From, t.Before = all[len(all)-1].From, all[len(all)-1].Before
			}
			t.To, t.IsAddress = rest[0].To, true
			for rest = rest[1:]; len(rest) > 0 && joins(t, rest[0]); rest = rest[1:] {
				t.To = rest[0].To
			}
		}
		all = append(all, t)
	}
	w.All = all
}

// At returns word i; empty if it is an address or out of range.
func (w *Words) At(i int) string {
	if i < 0 || i >= len(w.All) || w.All[i].IsAddress {
		return ""
	}
	return string(w.Plain[w.All[i].From:w.All[i].To])
}

// GapBefore returns the gap between word i and the one before.
func (w *Words) GapBefore(i int) Gap {
	if i <= 0 || i >= len(w.All) {
		return Clause
	}
	return w.All[i].Before
}
