package redact

// colon takes a ':', which with "//" behind it opens a URL's authority. Hosts and paths stay as they
// are; the query is text like any other.
func (s *scanner) colon(w int) {
	start := s.authority(s.pos + w)
	if start == 0 {
		s.separator(':', w)
		return
	}
	s.local = noLocal
	s.state.separate(':')
	s.pos = start
	at, end := start, start
	for end < len(s.in) {
		r, w := charAt(s.in, end)
		if r == '/' || endsPath(r) {
			break
		}
		if r == '@' {
			at = end
		}
		end += w
	}
	if at > start {
		s.redact(start, at, user)
	}
	s.state.number()
	s.local = noLocal
	s.pos = end
	if end >= s.pathEnd {
		s.pathEnd = pathEnd(s.in, end)
	}
}

// authority is where the authority begins if "//" is at i; else 0.
func (s *scanner) authority(i int) int {
	for range 2 {
		r, w := seenAt(s.in, i)
		if r != '/' {
			return 0
		}
		i += w
	}
	return i
}

// pathEnd is where the URL's path that begins at i ends.
func pathEnd(s string, i int) int {
	for i < len(s) {
		r, w := charAt(s, i)
		if endsPath(r) {
			break
		}
		i += w
	}
	return i
}

// endsPath reports whether r ends the authority or path of a URL within a text.
func endsPath(r rune) bool {
	switch r {
	case '?', '#', ' ', '\n', '\r', '\t', '"', '\'', '<', '>', ',', ';', '|', '&':
		return true
	}
	return false
}
