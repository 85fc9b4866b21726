package decision

// sightings are the literals that were found in a message. It has room for those of usual catalogues and messages, as it is
// part of a search, which then allocates nothing.
type sightings struct {
	literals int // how many were found, the same ones again and again
	few      [1024]uint8
	many     literalCounts // in place of few where there are more
	// anchors is how many stand in fewAnchors and then in moreAnchors.
	anchors     int
	fewAnchors  [48]anchor
	moreAnchors []anchor
}

// anchor is where an anchor of words stands: text[from:to]. It is small, as room for many is cleared for each message.
type anchor struct{ literal, from, to int32 }

// mostSightings of one literal in a message.
const mostSightings = 8

// literalCounts are how often every literal was found in a message, as far as that is counted; none of those behind it.
type literalCounts []uint8

func (s *sightings) counts() literalCounts {
	if s.many != nil {
		return s.many
	}
	return s.few[:]
}

func (s *sightings) of(literal int) uint8 { return s.counts().of(literal) }

// count counts one of so many literals.
func (s *sightings) count(literal, of int) {
	if s.many == nil && of > len(s.few) {
		s.many = make(literalCounts, of)
	}
	s.counts()[literal]++
	s.literals++
}

// anchor keeps the anchors in the order in which they begin; a needle of many words is found by one of the later ones.
func (s *sightings) anchor(a anchor) {
	if s.anchors < len(s.fewAnchors) {
		s.fewAnchors[s.anchors] = a
	} else {
		s.moreAnchors = append(s.moreAnchors, a)
	}
	s.anchors++
	for i := s.anchors - 1; i > 0; i-- {
		before, here := s.anchorAt(i-1), s.anchorAt(i)
		if before.from <= here.from {
			break
		}
		*before, *here = *here, *before
	}
}

func (s *sightings) anchorAt(i int) *anchor {
	if i < len(s.fewAnchors) {
		return &s.fewAnchors[i]
	}
	return &s.moreAnchors[i-len(s.fewAnchors)]
}

func (c literalCounts) of(literal int) uint8 {
	if literal >= len(c) {
		return 0
	}
	return c[literal]
}

func (c literalCounts) hasAny(literals []int) bool {
	for _, literal := range literals {
		if c.of(literal) > 0 {
			return true
		}
	}
	return false
}

// hasAll tells whether of each list at least one was found.
func (c literalCounts) hasAll(lists [][]int) bool {
	for _, list := range lists {
		if !c.hasAny(list) {
			return false
		}
	}
	return true
}
