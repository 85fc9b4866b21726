package text

import (
	"bytes"
	"strings"
	"sync"
)

// Words is a text as people read it: in lower case without accents, with entities and escapes read.
type Words struct {
	// Text as it came.
	Text string
	// Plain has one byte for a character, and a blank for a run of white space.
	Plain []byte
	// Offsets of the characters of Plain in the text, and of its end.
	Offsets []int32
	All     []Word
	reading Reading // whose memory Plain and Offsets use
}

// Word is a word, or an address, whose parts say nothing.
type Word struct {
	// From and To are its place in Plain.
	From, To int
	// Before is what stands between it and the word before it.
	Before    Gap
	IsAddress bool
}

// Gap is the strongest of what stands between two words.
type Gap uint8

// The gaps, the weakest first.
const (
	Space  Gap = iota // a blank, a hyphen, a quotation mark
	Pause             // a comma, a colon, a bracket
	Clause            // the end of a sentence or of a line, or a semicolon
)

// mostKept is the longest text whose memory is kept for others.
const mostKept = 64 << 10

var words = sync.Pool{New: func() any { return new(Words) }}

// ReadWords reads a text. Whoever has done with its Words frees them.
func ReadWords(s string) *Words {
	w := words.Get().(*Words)
	w.read(s)
	return w
}

// Free gives the memory of w, which is not to be used any more, to others.
func (w *Words) Free() {
	if w.Text = ""; cap(w.Plain) <= mostKept {
		words.Put(w)
	}
}

func (w *Words) read(message string) {
	w.reading.Read(message, nil)
	chars, from := w.reading.Chars, w.reading.From
	w.Text, w.Plain, w.Offsets, w.All = message, chars[:0], from[:0], w.All[:0]
	open, before := false, Clause // open tells that a word goes on
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

// folded is what a character of a Reading is in lower case, and a blank for what looks like no ASCII one.
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

// abbreviations end in a full stop that ends no sentence.
var abbreviations = map[string]bool{"n": true, "no": true, "nr": true, "num": true, "art": true, "sr": true, "sra": true,
	"dr": true, "dra": true, "cod": true, "ref": true}

// endsSentence reports whether a full stop before rest does.
func (w *Words) endsSentence(rest []byte) bool {
	if len(rest) > 0 && rest[0] > ' ' && rest[0] != '"' && rest[0] != '<' {
		return false
	}
	last := len(w.All) - 1
	return last < 0 || !abbreviations[w.At(last)]
}

// joinAddresses makes one Word of the words of each URL and each e-mail address.
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

// At returns the i-th word; empty outside of the text and for an address.
func (w *Words) At(i int) string {
	if i < 0 || i >= len(w.All) || w.All[i].IsAddress {
		return ""
	}
	return string(w.Plain[w.All[i].From:w.All[i].To])
}

// GapBefore returns what stands between the i-th word and the one before it.
func (w *Words) GapBefore(i int) Gap {
	if i <= 0 || i >= len(w.All) {
		return Clause
	}
	return w.All[i].Before
}
