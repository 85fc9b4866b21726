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
	till       int32 // of the first of a date or time: where that ends
	form       form
	class      class // of a word
	kind       kind  // of a mark, or that a word labels
	gap        gap
	joint      separators // between the number before and this one, if they may be of one
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
	url    // ://
	endTag // </name
	indent // a line's end and blanks
	other  // what is not blank
)

// edit is a datum, of which a placeholder takes the place, or what may be one: the characters from start to end.
type edit struct {
	start, end int
	kind       kind
}

// reader reads one text.
type reader struct {
	text.Reading
	in         string
	edits      []edit
	tokens     []token
	cluster    cluster
	context    context
	gap        gap // since the last token
	host, path int // ends of a URL's parts
}

// readers keeps the room of finished ones.
var readers = sync.Pool{New: func() any { return new(reader) }}

const (
	maxPasses = 12      // over one text; fuzzing has seen five
	maxKept   = 1 << 16 // characters that a pooled reader has room for
)

// read finds the data in s.
func (r *reader) read(s string) {
	r.in, r.edits = s, r.edits[:0]
	r.Read(s, isNumber)
	r.markPlaceholders()
	r.readSigns()
	r.tokenise()
	r.readColumns()
	r.readTokens()
}

// firstMark is the character that stands for a placeholder of kind 0.
const firstMark = 0x80

func isMark(c byte) bool { return c&^0xf == firstMark }

// markPlaceholders puts one character in place of each placeholder.
func (r *reader) markPlaceholders() {
	n := bytes.IndexByte(r.Chars, '[')
	if n < 0 {
		return
	}
	for i := n; i < len(r.Chars); n++ {
		c, size := r.Chars[i], 1
		if c == '[' {
			for k, info := range marked {
				if bytes.HasPrefix(r.Chars[i:], []byte(info.placeholder)) {
					c, size = firstMark+byte(cpf)+byte(k), len(info.placeholder)
				}
			}
		}
		r.Chars[n], r.From[n], r.Till[n] = c, r.From[i], r.Till[i+size-1]
		i += size
	}
	r.Chars = r.Chars[:n]
}

// redact takes the characters from start to end, and reports whether there are any, and no mark among them.
func (r *reader) redact(start, end int, k kind) bool {
	if start >= end || slices.ContainsFunc(r.Chars[start:end], isMark) {
		return false
	}
	r.edits = append(r.edits, edit{start, end, k})
	return true
}

// apply returns the text with the edits made. Where two overlap the longer or first comes whole.
func (r *reader) apply() string {
	slices.SortFunc(r.edits, func(a, b edit) int { return cmp.Or(a.start-b.start, b.end-a.end) })
	var b strings.Builder
	b.Grow(len(r.in) + len(r.edits)*len(kinds[birth].placeholder))
	from, read := 0, 0
	for _, e := range r.edits {
		if e.start = max(e.start, read); e.start >= e.end {
			continue
		}
		b.WriteString(r.in[from:max(from, int(r.From[e.start]))])
		b.WriteString(kinds[e.kind].placeholder)
		from, read = int(r.Till[e.end-1]), e.end
	}
	b.WriteString(r.in[from:])
	return b.String()
}

// readTokens finds the data that words and numbers tell of.
func (r *reader) readTokens() {
	read := 0 // characters
	r.context = context{}
	for i := range r.tokens {
		t := &r.tokens[i]
		if r.context.crosses(t.gap); int(t.start) < read || t.host {
			r.meets(i)
			continue
		}
		found := edit{}
		if t.form != fixed {
			found = r.boundAt(i)
		}
		switch {
		case found.kind != none:
		case t.form == word:
			found = r.readWord(i)
		case t.form == number, t.form == date:
			found = r.readNumber(i)
		}
		if found.kind == none || r.redact(found.start, found.end, found.kind) {
			read = max(read, found.end)
		}
		r.meets(i)
	}
}

// readWord returns the datum that the word i begins or says that it follows.
func (r *reader) readWord(i int) edit {
	if end := r.notedAt(&r.tokens[i]); end > 0 {
		return edit{end: end}
	}
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
