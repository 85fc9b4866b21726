package redact

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"sync"

	"retry-worker/internal/text"
)

// edit is a datum that a placeholder is to replace: the characters from start to end. Without a kind it is a mere span.
type edit struct {
	start, end int
	kind       kind
}

// reader reads one text.
type reader struct {
	text.Reading
	in                        string
	edits, known              []edit // found in this pass; those of them that are looked for elsewhere
	tokens                    []token
	classes                   []class // of the tokens
	context                   context
	decoded                   []byte
	hostEnd, pathEnd, dateEnd int // where a URL's host and path and a date end, while tokens are made
}

// readers keeps the memory of finished readers.
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
	if r.readEncoded(); len(r.edits) > 0 {
		return
	}
	r.readSigns()
	r.tokenise()
	r.readLists()
	r.readTokens()
	if len(r.edits) == 0 {
		r.readMarkup()
	}
	r.readRepeated()
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

// redact records the edit e, and reports whether it did: not where e is empty or a mark is in it.
func (r *reader) redact(e edit) bool {
	if e.start >= e.end || slices.ContainsFunc(r.Chars[e.start:e.end], isMark) {
		return false
	}
	r.edits = append(r.edits, e)
	return true
}

// apply returns the text with the edits made. Of two that overlap the one that begins first is made whole; of two that
// begin together, the longer.
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

// readTokens finds numbers, and the data that words announce.
func (r *reader) readTokens() {
	r.context = context{}
	read := 0 // where what is settled ends
	for i, c := range r.classes {
		if !r.isRead(i) {
			r.context.crosses(c)
			continue
		}
		if r.start(i) >= read {
			if e := r.readToken(i); e.kind == none || r.redact(e) {
				read = max(read, e.end)
			}
		}
		r.meets(i)
	}
}

// readToken returns the datum that begins with the token i, or the one that i announces. An edit without a kind says
// that the text stays up to its end.
func (r *reader) readToken(i int) (e edit) {
	c, k := r.classes[i], r.tokens[i].kind
	isOwners := is(r.class(i-1), ":;,") && isAlnum(r.char(r.start(i)-2)) && (k == cpf || c == number && r.size(i) == 11)
	if isOwners || k == mail && r.class(i-1) == '<' { // ANA REIS:12345678900, Ana Reis <[E-MAIL]>
		if owner := r.nameBefore(i - 1); owner.kind != none {
			if c == number {
				owner.end = r.end(i)
			}
			return owner
		}
	}
	switch {
	case is(c, "236"):
		return e
	case c == writer:
		return r.nameBefore(i)
	}
	if e.end = r.notedAt(i); e.end == 0 {
		e = r.codeAt(i)
	}
	isBorn := r.context.label == birth && r.context.direct
	switch {
	case e.end > 0:
	case isBorn && r.birthEnd(i) > 0:
		return edit{r.start(i), r.birthEnd(i), birth}
	case c == number, c == date:
		return r.readNumber(i)
	case is(c, "SDOJ"):
		e = r.secretAt(i)
	case r.context.label == address, is(c, streets):
		e = r.addressAt(i)
	}
	if e.end == 0 {
		e = r.nameAt(i)
	}
	return e
}
