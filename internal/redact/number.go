package redact

// enough is how many digits the shortest unlabelled datum has.
const enough = 8

// number takes the digits at pos.
func (s *scanner) number() {
	s.begin()
	isBirth := s.state.label == birth && s.state.direct
	end := instantEnd(s.in, s.pos)
	if end == 0 && isBirth {
		end = writtenDateEnd(s.in, s.pos)
	}
	switch {
	case end > 0 && isBirth:
		s.redact(s.pos, end, birth)
		return
	case end > 0:
		s.pass(end)
		return
	}
	var c cluster
	c.read(s.in, s.pos)
	if s.takeProtocol(&c) {
		return
	}
	k, n := s.judge(&c)
	if n == 0 && s.pos >= s.pathEnd {
		k, n = c.labelledAfter(s.in)
	}
	if n == 0 {
		n = 1
		if c.whole && c.count(c.n) < enough {
			n = c.n
		}
	}
	switch end := c.groups[n-1].end; {
	case k == none:
		s.pass(end)
	case c.isPunctuated():
		s.redact(s.pos, end, k)
	default:
		s.replace(&c, k, n)
	}
}

// replace redacts the first n groups of c, unless a UUID, a hash, an IP address or a date is among them.
func (s *scanner) replace(c *cluster, k kind, n int) {
	from := s.lastEnd()
	for i, g := range c.groups[:n] {
		if i > 0 && (c.address(i) > 0 || !s.state.direct && dateEnd(s.in, g.start) > 0) {
			s.pass(c.groups[0].end)
			return
		}
		if end := identifierEnd(s.in[from:], g.start-from, g.end-from); end > 0 {
			if i > 0 {
				end = c.groups[0].end - from
			}
			s.pass(from + end)
			return
		}
	}
	s.redact(s.pos, c.groups[n-1].end, k)
}

// pass keeps the number up to end, and the digits that go on behind it.
func (s *scanner) pass(end int) {
	s.state.number()
	for {
		r, w := seenAt(s.in, end)
		if !isDigit(r) {
			s.pos = end
			return
		}
		end += w
	}
}

// takeProtocol passes over a protocol number, however long. A CPF with its punctuation is none.
func (s *scanner) takeProtocol(c *cluster) bool {
	if s.state.keep != keepOne && s.state.keep != keepList || c.isPunctuated() {
		return false
	}
	s.pass(max(keptEnd(s.in, s.pos), c.groups[0].end))
	return true
}

// judge says what the cluster begins with: a datum of so many groups, or with none so many groups that
// stay; 0 groups where there is nothing to say.
func (s *scanner) judge(c *cluster) (kind, int) {
	switch t := &s.state; {
	case c.isPunctuated():
		return cpf, 4
	case t.money:
		return none, c.amount()
	case t.keep == keepKey && c.isKey(), t.keep == keepRegistry && c.count(1) == 6, t.keep == keepCompany &&
		c.count(1) == 14:
		return none, 1
	}
	if n := c.address(0); n > 0 && !(s.isPersons() && c.fit(grouped, 0)) {
		return none, n
	}
	if n := c.company(); n > 0 {
		if s.isPersons() {
			return s.state.label, n
		}
		return none, n
	}
	if s.pos < s.pathEnd {
		return s.judgePath(c)
	}
	return s.judgePersonal(c)
}

// isPersons reports whether a label right before says that the number is a person's.
func (s *scanner) isPersons() bool {
	return s.state.direct && (s.state.label == cpf || s.state.label == id || s.state.label == record)
}

// judgePersonal goes from the certain to the likely. A label that leaves the kind open comes last.
func (s *scanner) judgePersonal(c *cluster) (kind, int) {
	if k, n := c.certainAt(0); k != none {
		return k, n
	}
	t := &s.state
	if t.direct && t.label != phone && t.label != id {
		if n := c.labelled(t.label, true); n > 0 {
			return t.label, n
		}
	}
	if k, n := c.likelyAtFirst(false); k != none {
		return k, n
	}
	return t.label, c.labelled(t.label, t.direct)
}

// judgePath takes from a URL's path what a label stands before: /cpf/123…, and nothing else.
func (s *scanner) judgePath(c *cluster) (kind, int) {
	t := &s.state
	if !t.direct {
		return none, 0
	}
	if t.label == id {
		if k := verified(c.span(0, 1)); k == cpf || k == cns {
			return k, 1
		}
		return none, 0
	}
	if n := c.labelled(t.label, true); n > 0 {
		return t.label, n
	}
	return none, 0
}

// dial takes a '+' or '(' , which may open a telephone number.
func (s *scanner) dial(r rune, w int) {
	if r == '+' {
		s.begin()
	}
	if end := s.dialled(r, s.pos+w); end > 0 && s.pos >= s.pathEnd {
		s.redact(s.pos, end, phone)
		return
	}
	if r == '(' {
		s.separator(r, w)
		return
	}
	s.state.separate(r)
	s.pos += w
}

// dialled returns the end of the telephone number whose digits begin at i, behind the sign r; 0 for none.
func (s *scanner) dialled(r rune, i int) int {
	next, w := seenAt(s.in, i)
	if r == '+' && next == '(' {
		i += w
		next, w = seenAt(s.in, i)
	}
	if w == 0 || !isDigit(next) || dateEnd(s.in, i) > 0 {
		return 0
	}
	var c cluster
	c.read(s.in, until(s.in, i, isSeen))
	n := 0
	if r == '+' {
		n = c.international()
	} else if c.n > 1 && c.groups[1].before&paren != 0 && c.count(1) <= 3 {
		if k, groups := c.likelyAtFirst(true); k == phone {
			n = groups
		}
	}
	if n == 0 {
		return 0
	}
	return c.groups[n-1].end
}
