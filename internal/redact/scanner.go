package redact

import "strings"

// scanner goes through a text once.
type scanner struct {
	in    string
	pos   int
	stop  int // bytes of output that are enough, once no e-mail address may be under way
	edits edits
	state state

	local   int   // where the run of characters of an e-mail's local part began; noLocal outside one
	before  state // at local
	pathEnd int   // of the URL whose path this is
}

const noLocal = -1

// scan finds the edits.
func (s *scanner) scan() {
	s.local = noLocal
	for s.pos < len(s.in) && (s.pos-s.edits.saved < s.stop || s.local != noLocal) {
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
	case isLetter(r):
		s.word()
	case r == '@':
		s.at(w)
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
	return s.pos > s.edits.end() && classes[s.in[s.pos-1]] == letter
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
	s.edits.add(edit{start, end, k})
	s.pos = end
	if !isJoined(s.in[start:end]) {
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

// bracket takes a '[', which may begin a mark.
func (s *scanner) bracket(w int) {
	k := markAt(s.in[s.pos:])
	if k == none {
		s.separator('[', w)
		return
	}
	s.local = noLocal
	s.state.datum(k)
	s.pos += len(marks[k])
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
	for w > 0 && (isLetter(r) || strings.ContainsRune("/:-_.", r)) {
		s.pos += w
		r, w = seenAt(s.in, s.pos)
	}
}
