package redact

import "strings"

const (
	maxAddress = 200 // bytes
	maxPrefix  = 8   // letters before the digits of a number
)

// word takes the letters at pos; an identifier of several words one by one.
func (s *scanner) word() {
	s.begin()
	w := wordAt(s.in, s.pos)
	if w.role != 0 || !w.camel {
		s.take(&w)
		return
	}
	for start, end := w.start, w.end; s.pos < end; {
		w = humpAt(s.in, s.pos, end)
		w.inner = w.start > start
		s.take(&w)
	}
}

func (s *scanner) take(w *word) {
	if s.state.idle() && w.role&begins == 0 {
		s.state.short, s.state.ended = w.end-w.start <= maxShort, false
		s.pos = w.end
		return
	}
	if s.takeClaim(w) || s.takeKept(w) || s.takeAddress(w) || s.takeName(w) || s.takeQuoted(w) {
		return
	}
	direct := s.state.direct && s.isPrefix(w)
	s.state.meet(w)
	s.state.direct = s.state.direct || direct && s.state.label != none
	s.pos = w.end
}

// isPrefix reports whether w is the letters of a number: MG-12.345.678.
func (s *scanner) isPrefix(w *word) bool {
	rest := strings.TrimPrefix(s.in[w.end:], "-")
	return w.role == 0 && w.end-w.start <= maxPrefix && rest != "" && classes[rest[0]] == digit
}

// takeClaim passes over a claim's id (CLM-001-1234567890), whatever its digits are.
func (s *scanner) takeClaim(w *word) bool {
	if w.role&claim == 0 || !strings.HasPrefix(s.in[w.end:], "-") {
		return false
	}
	s.pass(claimEnd(s.in, w.end))
	return true
}

// takeKept passes over the letters and digits of a protocol number: PRT-2025-123.
func (s *scanner) takeKept(w *word) bool {
	if s.state.keep != keepOne && s.state.keep != keepList || !s.isPrefix(w) {
		return false
	}
	i := w.end
	if s.in[i] == '-' {
		i++
	}
	if isPunctuated(s.in[i:]) {
		return false
	}
	s.pass(keptEnd(s.in, i))
	return true
}

// takeAddress redacts the whole of a quoted or tagged address that begins with w.
func (s *scanner) takeAddress(w *word) bool {
	if s.state.label != address || !s.state.direct || s.pos < s.pathEnd {
		return false
	}
	closer := opener(s.in[:w.start])
	switch closer {
	case 0:
		return false
	case '>':
		closer = '<'
	}
	for i := w.start; i < len(s.in) && i < w.start+maxAddress; {
		r, size := charAt(s.in, i)
		switch r {
		case closer:
			s.redact(w.start, i, address)
			return true
		case ':', '@', '[', '\n': // more than an address, or read before
			return false
		}
		i += size
	}
	return false
}
