package redact

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"sync"

	"retry-worker/internal/text"
)

// token is a word, a group of digits or a mark, with what stands between it and the token before.
type token struct {
	start, end int32 // in chars
	form       form
	class      class // of a word
	kind       kind  // of a mark, or that a word labels
	gap        gap
	joint      separators // between the number before and this one, if they may be of one
	inner      bool       // one of several words that are written together, and not the first
	host, path bool       // stands in a URL
}

type form uint8

const (
	word   form = iota
	number      // a group of digits
	mark        // a placeholder
	date        // a group of digits of a date or time
	fixed       // a part of what stays whatever it holds: a UUID, a hash, a claim's id
)

// gap is a set of what stands between two tokens.
type gap uint16

const (
	line   gap = 1 << iota
	comma      // ends a protocol number's label, and a name
	hard       // ; ! ? & and the end of a sentence
	closer     // ) ] } |
	open       // < {
	sign       // : = > and quotation marks, which assign
	dash
	dollar
	url    // ://
	endTag // </name
	indent // a line's end and blanks
	other  // what is not blank
)

// edit is a datum: the characters from start to end become its kind's mark.
type edit struct {
	start, end int
	kind       kind
}

// reader reads one text.
type reader struct {
	text.Reading
	in         string
	source     []edit // in bytes of the text
	edits      []edit // of this pass
	tokens     []token
	skip       edit // ahead of what is read: an element's text
	cluster    cluster
	gap        gap // since the last token
	host, path int // ends of a URL's parts
}

// readers keeps the room of finished ones.
var readers = sync.Pool{New: func() any { return new(reader) }}

const (
	maxPasses = 12      // over one text; fuzzing has seen five
	maxKept   = 1 << 16 // characters that a pooled reader has room for
)

// redacted returns s with its data replaced. It is read until nothing more is found: so a second reading of what comes
// out, in which the placeholders are read as the marks are here, finds nothing either.
func redacted(s string) string {
	r := readers.Get().(*reader)
	r.in = s
	r.Read(s, isNumber)
	r.source = r.source[:0]
	r.markPlaceholders()
	for range maxPasses {
		before := len(r.source)
		r.readSigns()
		r.tokenise()
		r.readColumns()
		r.readTokens()
		r.settle()
		if len(r.source) == before {
			break
		}
	}
	out := r.apply(s)
	r.in = ""
	if cap(r.Chars) <= maxKept {
		readers.Put(r)
	}
	return out
}

// markPlaceholders puts one character in place of each placeholder that the text came with.
func (r *reader) markPlaceholders() {
	for i := 0; ; i++ {
		next := bytes.IndexByte(r.Chars[i:], '[')
		if next < 0 {
			break
		}
		i += next
		for k := cpf; k < record; k++ {
			if bytes.HasPrefix(r.Chars[i:], []byte(placeholders[k])) {
				r.edits = append(r.edits, edit{i, i + len(placeholders[k]), k})
			}
		}
	}
	r.settle()
	r.source = r.source[:0]
}

// firstMark is the character that stands for a datum of kind 0.
const firstMark = 0x80

func isMark(c byte) bool { return c&^0xf == firstMark }

// redact takes the characters from start to end, of which none is a mark.
func (r *reader) redact(start, end int, k kind) {
	r.edits = append(r.edits, edit{start, end, k.plain()})
}

// settle puts marks in place of the edits.
func (r *reader) settle() {
	if len(r.edits) == 0 {
		return
	}
	slices.SortFunc(r.edits, func(a, b edit) int { return cmp.Or(a.start-b.start, b.end-a.end) })
	n, from := 0, 0
	for _, e := range r.edits {
		if e.end <= max(from, e.start) || slices.ContainsFunc(r.Chars[e.start:e.end], isMark) {
			continue
		}
		if e.start < from { // in a secret, perhaps, that ends within it
			e.start = from
		}
		n += r.move(n, from, e.start)
		begin, till := r.From[e.start], r.Till[e.end-1]
		r.source = append(r.source, edit{int(begin), int(till), e.kind})
		r.Chars[n], r.From[n], r.Till[n] = firstMark+byte(e.kind), begin, till
		n, from = n+1, e.end
	}
	n += r.move(n, from, len(r.Chars))
	r.Chars, r.From, r.Till, r.edits = r.Chars[:n], r.From[:n], r.Till[:n], r.edits[:0]
}

// move copies the characters from start to end to those from n on, and returns how many they are.
func (r *reader) move(n, start, end int) int {
	copy(r.From[n:], r.From[start:end])
	copy(r.Till[n:], r.Till[start:end])
	return copy(r.Chars[n:], r.Chars[start:end])
}

// apply returns s with the edits made; s itself where there are none.
func (r *reader) apply(s string) string {
	if len(r.source) == 0 {
		return s
	}
	slices.SortFunc(r.source, func(a, b edit) int { return a.start - b.start })
	var b strings.Builder
	size := len(s)
	for _, e := range r.source {
		size += len(placeholders[e.kind]) - (e.end - e.start)
	}
	b.Grow(size)
	from := 0
	for _, e := range r.source {
		b.WriteString(s[from:e.start])
		b.WriteString(placeholders[e.kind])
		from = e.end
	}
	b.WriteString(s[from:])
	return b.String()
}

// readTokens finds the data that words and numbers tell of.
func (r *reader) readTokens() {
	r.skip = edit{}
	read := 0 // characters
	for i := range r.tokens {
		t := &r.tokens[i]
		start := int(t.start)
		if start < read || r.skip.start <= start && start < r.skip.end || t.host {
			continue
		}
		found := edit{}
		switch t.form {
		case word:
			found = r.readWord(i)
		case number, date:
			found = r.readNumber(i)
		}
		if found.kind != none && !slices.ContainsFunc(r.Chars[found.start:found.end], isMark) {
			r.redact(found.start, found.end, found.kind)
			read = found.end
		} else if found.kind == none && found.end > read {
			read = found.end
		}
	}
}

// readWord returns the datum that the word i begins or says that it follows.
func (r *reader) readWord(i int) edit {
	if e := r.secretAt(i); e.kind != none {
		return e
	}
	if e := r.quotedAt(i); e.end > 0 {
		return e
	}
	if e := r.addressAt(i); e.kind != none {
		return e
	}
	return r.nameAt(i)
}
