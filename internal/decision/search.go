package decision

import "strconv"

// search is one message on its way through a classifier.
type search struct {
	*Classifier
	message string
	// plain form of the message; its text is nil until it is needed.
	plain plain
	// best is the place of the first matcher in order of precedence that was found, 0 for none; it matched what
	// stands there.
	best  int
	there span
}

// span is a part of one of a message's forms.
type span struct {
	form     form
	from, to int
}

type form uint8

const (
	asItCame form = iota
	asNormalised
	asPlain
	asFolded
	beside // no part of the message: the status that came with it
)

// Classify is analyzeError of RN-BIL-005 §12.4. message is taken as it came; httpStatus is what came beside it, 0 for
// none.
func (c *Classifier) Classify(message string, httpStatus int) Match {
	if c == nil || len(c.matchers) == 0 {
		return unknownError
	}
	var room [2304]byte // most messages fit, and then nothing is allocated
	normal := room[:]
	if len(message) > len(room) {
		normal = make([]byte, len(message))
	}
	normal = normal[:normalise(normal, message)]
	s := search{Classifier: c, message: message}
	folds := c.folds && needsFolding(message)
	s.words(normal, asNormalised, !folds)
	if folds {
		s.plain = plainOf(message)
		folded := make([]byte, len(s.plain.text))
		s.words(folded[:normalise(folded, string(s.plain.text))], asFolded, true)
	}
	s.numbersIn(httpStatus)
	return s.match(httpStatus)
}

// found keeps the matcher at place if it comes before what was found already.
func (s *search) found(place int, there span) {
	if place > 0 && (s.best == 0 || place < s.best) {
		s.best, s.there = place, there
	}
}

// words looks for codes and names in the normalised form, for phrases and patterns in the folded one; both says that
// it is the one and the other.
func (s *search) words(text []byte, as form, both bool) {
	s.Classifier.words.find(text, func(place, from, to int) {
		if s.best != 0 && s.best <= place {
			return
		}
		m := &s.matchers[place-1]
		if m.kind.folded() != (as == asFolded) && !(both && as == asNormalised) {
			return
		}
		begins := from == 0 || text[from-1] == '_'
		ends := to == len(text) || text[to] == '_'
		switch m.kind {
		case byPattern:
			s.try(place, m.pattern)
			return
		case byWord, byPhrase:
			if !begins || !ends {
				return
			}
		case byPrefix:
			if !begins {
				return
			}
		}
		s.found(place, span{as, from, to})
	})
}

// try matches a pattern whose literal was found.
func (s *search) try(place int, p *pattern) {
	if s.plain.text == nil {
		s.plain = plainOf(s.message)
	}
	if at := p.expression.FindIndex(s.plain.text); at != nil {
		s.found(place, span{asPlain, at[0], at[1]})
	}
}

// numbersIn looks at the whole numbers of the message, and at the status that came beside it.
func (s *search) numbersIn(httpStatus int) {
	if len(s.numbers) == 0 {
		return
	}
	if httpStatus != 0 {
		if n := s.numbers[strconv.Itoa(httpStatus)]; n != nil {
			s.found(n.status, span{form: beside})
		}
	}
	eachNumber(s.message, func(from, to int) {
		n := s.numbers[s.message[from:to]]
		if n == nil {
			return
		}
		there := span{asItCame, from, to}
		s.found(n.code, there)
		if n.status != 0 && httpStatus == 0 && isStatus(s.message, from, to) {
			s.found(n.status, there)
		}
		if n.tiss != 0 && isTISSCode(s.message, from) {
			s.found(n.tiss, there)
		}
	})
}

func (s *search) match(httpStatus int) Match {
	if s.best == 0 {
		return unknownError
	}
	m := &s.matchers[s.best-1]
	match := Match{m.rule.Class, m.name, m.rule.Reason, m.rule.Team, m.rule.Hint, s.part()}
	if s.there.form == beside {
		match.Text = strconv.Itoa(httpStatus)
	}
	return match
}

// part is what the best matcher matched, as it stands in the message.
func (s *search) part() string {
	from, to := s.there.from, s.there.to
	switch s.there.form {
	case asItCame:
		return s.message[from:to]
	case asNormalised:
		from, to = unnormalised(s.message, from, to)
		return s.message[from:to]
	case asFolded:
		from, to = unnormalised(string(s.plain.text), from, to)
		return s.ofPlain(from, to)
	case asPlain:
		return s.ofPlain(from, to)
	default:
		return ""
	}
}

// ofPlain is the part of the message that [from, to) of its plain form was made of.
func (s *search) ofPlain(from, to int) string {
	if from == to {
		return ""
	}
	last := int(s.plain.at[to-1])
	_, size := readRune(s.message[last:])
	return s.message[s.plain.at[from] : last+size]
}
