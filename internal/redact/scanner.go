package redact

import (
	"strings"
	"sync"
	"unicode"
)

// edit is a datum: in[start:end] becomes its kind's placeholder.
type edit struct {
	start, end int
	kind       kind
}

func (e edit) saves() int { return e.end - e.start - len(placeholders[e.kind]) }

// scanner goes through a text once.
type scanner struct {
	in    string
	pos   int
	stop  int    // bytes of output that are enough, once no e-mail address may be under way
	edits []edit // in the order of the text
	saved int    // bytes that they save
	state state

	due     edit  // a secret that lies ahead
	local   int   // where the run of characters of an e-mail's local part began; noLocal outside one
	before  state // at local
	mails   bool  // an '@' is somewhere
	spelled bool  // an '@' is spelled out somewhere
	pathEnd int   // of the URL whose path this is
}

const noLocal = -1

// scanners keeps the room for edits of finished ones.
var scanners = sync.Pool{New: func() any { return new(scanner) }}

// redacted returns in with its edits made, as far as stop asks for.
func redacted(in string, stop int) string {
	s := scanners.Get().(*scanner)
	defer scanners.Put(s)
	*s = scanner{in: in, stop: stop, edits: s.edits[:0], local: noLocal, mails: strings.IndexByte(in, '@') >= 0,
		spelled: spellsAt(in)}
	s.scan()
	s.in = ""
	return s.apply(in[:s.pos])
}

// scan finds the edits.
func (s *scanner) scan() {
	for s.pos < len(s.in) && (s.pos-s.saved < s.stop || s.local != noLocal) {
		if s.due.end > 0 && s.pos >= s.due.start {
			s.takeDue()
			continue
		}
		switch c := s.in[s.pos]; classes[c] {
		case letter:
			s.word()
		case digit:
			s.number()
		case other:
			s.separator(rune(c), 1)
		default:
			r, w := charAt(s.in, s.pos)
			s.char(r, w)
		}
	}
}

// char takes the logical character r of w bytes.
func (s *scanner) char(r rune, w int) {
	switch {
	case r == unseen:
		s.pos += w
	case isDigit(r):
		s.number()
	case unicode.IsLetter(r):
		s.word()
	case r == '@':
		s.at(w)
	case r == '"':
		s.quote(w)
	case r == '[':
		s.bracket(w)
	case r == '<':
		s.tag(w)
	case r == ':':
		s.colon(w)
	case r == '$':
		s.separator(r, w)
		s.state.money = true
	case r == '+' || r == '(':
		s.dial(r, w)
	case r < 0x80 && classes[r] == joint:
		s.begin()
		if r != '\'' || !s.isBehindLetter() {
			s.state.separate(r)
		}
		s.pos += w
	default:
		s.separator(r, w)
	}
}

// isBehindLetter reports whether a letter that stays stands before pos. An apostrophe there opens no
// value: the patient's, 'nome' ausente.
func (s *scanner) isBehindLetter() bool {
	return s.pos > s.lastEnd() && classes[s.in[s.pos-1]] == letter
}

// separator takes a character that ends an e-mail's local part.
func (s *scanner) separator(r rune, w int) {
	s.local = noLocal
	s.state.separate(r)
	s.pos += w
}

// begin notes where a local part may begin.
func (s *scanner) begin() {
	if s.local == noLocal {
		s.local, s.before = s.pos, s.state
	}
}

// redact replaces in[start:end], which ends the text read so far.
func (s *scanner) redact(start, end int, k kind) {
	k = k.plain()
	e := edit{start, end, k}
	s.edits = append(s.edits, e)
	s.saved += e.saves()
	s.pos = end
	if k == secret || !isJoined(s.in[start:end]) {
		s.local = noLocal
	}
	s.state.datum(k)
}

// isJoined reports whether all of s may stand in a local part.
func isJoined(s string) bool {
	for i := range len(s) {
		if c := classes[s[i]]; c != letter && c != digit && c != joint && s[i] != '+' {
			return false
		}
	}
	return true
}

// bracket takes a '[', which may begin a placeholder.
func (s *scanner) bracket(w int) {
	k := placeholderAt(s.in[s.pos:])
	if k == none {
		s.separator('[', w)
		return
	}
	s.local = noLocal
	s.state.datum(k)
	s.pos += len(placeholders[k])
}

// tag takes a '<'. A closing tag says nothing about what follows it, CDATA nothing at all.
func (s *scanner) tag(w int) {
	const cdata = "<![CDATA["
	if strings.HasPrefix(s.in[s.pos:], cdata) {
		s.local = noLocal
		s.pos += len(cdata)
		return
	}
	s.separator('<', w)
	r, w := seenAt(s.in, s.pos)
	if r != '/' {
		return
	}
	s.state = state{}
	for w > 0 && (unicode.IsLetter(r) || strings.ContainsRune("/:-_.", r)) {
		s.pos += w
		r, w = seenAt(s.in, s.pos)
	}
}

// undo takes back the edits from start on.
func (s *scanner) undo(start int) {
	for n := len(s.edits); n > 0 && s.edits[n-1].start >= start; n-- {
		s.saved -= s.edits[n-1].saves()
		s.edits = s.edits[:n-1]
	}
}

// lastEnd returns where the last edit ends; 0 where there is none.
func (s *scanner) lastEnd() int {
	if len(s.edits) == 0 {
		return 0
	}
	return s.edits[len(s.edits)-1].end
}

// apply returns text with the edits made; text itself where there are none.
func (s *scanner) apply(text string) string {
	if len(s.edits) == 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) - s.saved)
	from := 0
	for _, e := range s.edits {
		b.WriteString(text[from:e.start])
		b.WriteString(placeholders[e.kind])
		from = e.end
	}
	b.WriteString(text[from:])
	return b.String()
}
