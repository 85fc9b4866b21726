package decision

import (
	"bytes"
	"strconv"
	"strings"
)

// search is one message on its way through a classifier.
type search struct {
	*Classifier
	message    string
	httpStatus int
	sightings  sightings
	// mayHoldCode tells that the normal form must be searched too.
	mayHoldCode bool
	// best is the place of the first matcher in order of precedence that was found, 0 for none; it matched what
	// stands there.
	best  int
	there span
}

// span is a part of a message: in one of its forms, in the message itself where form is nil, or beside it: the status.
type span struct {
	form     *form
	from, to int
	beside   bool
}

const (
	// usualMessage in bytes: up to that length, and with a usual catalogue, a search allocates nothing but where patterns are
	// tried.
	usualMessage = 2304
	shortMessage = 256
	// patternReach is how much of a message patterns and words are compared with: they cost more than the rest, and what is
	// behind that much text says no more.
	patternReach = 64 << 10
)

// Classify is analyzeError of RN-BIL-005 §12.4. message is taken as it came; httpStatus is what came beside it, 0 for
// none.
func (c *Classifier) Classify(message string, httpStatus int) Match {
	if c == nil || len(c.matchers) == 0 {
		return unknownError
	}
	s := search{Classifier: c, message: message, httpStatus: httpStatus}
	s.readWords()
	s.readStatus()
	s.readNumbers()
	return s.match()
}

// readWords gives the forms of the message room, and clears no more for it than the message needs.
func (s *search) readWords() {
	switch n := len(s.message); {
	case n <= shortMessage:
		var room [shortMessage + padding]byte
		s.readForms(room[:])
	case n <= usualMessage:
		var room [usualMessage + padding]byte
		s.readForms(room[:])
	default:
		s.readForms(make([]byte, n+padding))
	}
}

// readForms looks for codes in the normal form of the message and for all other texts in the folded one. Where both are
// the same, or the folded one shows that there cannot be a code in the other, it is read once.
func (s *search) readForms(room []byte) {
	var seams seams
	folded, special := foldedForm.write(room, s.message, &seams)
	places, all := seams.all()
	s.mayHoldCode = special && (s.gapped || !all || hasEscapes(s.message))
	s.find(folded, places, foldedForm, !special)
	s.tryWords(folded)
	s.tryPatterns()
	if s.mayHoldCode {
		normal, _ := normalForm.write(room, s.message, nil)
		s.find(normal, nil, normalForm, true)
	}
}

// gaps are the padding of a text.
var gaps = strings.Repeat("_", padding)

// find looks for texts in one form of the message, which has room for padding; codes tells that codes can be found in it.
func (s *search) find(text []byte, seams []int32, as *form, codes bool) {
	copy(text[len(text):len(text)+padding], gaps)
	s.texts.candidates(text, seams, !codes, func(n *needle, from int) {
		if n.kind >= ofPattern {
			if as == foldedForm {
				s.findLiteral(n, text, from)
			}
			return
		}
		switch {
		case !s.isBetter(n.number):
			// found already
		case n.kind == byCode && !codes:
			// An accented letter is a gap in the normal form, so a word of the code, which has none, stands in both.
			s.mayHoldCode = s.mayHoldCode || n.wordStands(text, from)
		case n.kind != byCode && as != foldedForm:
			// looked for already
		case n.stands(text, from):
			to := from + len(n.text)
			if n.kind == byPrefix {
				to = wordEnd(text, to)
			}
			s.best, s.there = n.number, span{form: as, from: from, to: to}
		}
	})
}

// findLiteral remembers that a literal was found.
func (s *search) findLiteral(n *needle, text []byte, from int) {
	if s.sightings.of(n.number) == mostSightings || from > patternReach || !n.stands(text, from) {
		return
	}
	s.sightings.count(n.number, len(s.literals))
	if len(s.anchored[n.number]) > 0 {
		s.sightings.anchor(anchor{int32(n.number), int32(from), int32(from + len(n.text))}) // within patternReach
	}
}

// tryWords looks around the anchors that were found.
func (s *search) tryWords(text []byte) {
	counts := s.sightings.counts()
	known := counts
	if len(text) > patternReach { // behind it words stand that were not counted
		known = nil
	}
	for i := range s.sightings.anchors {
		a := s.sightings.anchorAt(i)
		var near surroundings
		for _, i := range s.anchored[a.literal] {
			w := &s.words[i]
			if !s.isBetter(w.place) || !counts.hasAll(w.literals) || known != nil && !known.hasAll(w.shorts) {
				continue
			}
			if near.words == nil {
				near = surroundingsOf(text, int(a.from), int(a.to))
			}
			if from, to, ok := w.near(&near, known); ok {
				s.best, s.there = w.place, span{form: foldedForm, from: from, to: wordEnd(text, to)}
			}
		}
	}
}

// wordEnd is where the word ends that goes on at text[to:], so that people see words and not beginnings.
func wordEnd(text []byte, to int) int {
	if i := bytes.IndexByte(text[to:], '_'); i >= 0 {
		return to + i
	}
	return len(text)
}

// tryPatterns compares the patterns whose literals were found, until one matches.
func (s *search) tryPatterns() {
	if s.sightings.literals == 0 {
		return
	}
	counts := s.sightings.counts()
	var plain []byte
	for _, p := range s.patterns {
		if !s.isBetter(p.place) {
			return // nor are those behind it
		}
		if !counts.hasAll(p.literals) {
			continue
		}
		if plain == nil {
			message := s.message[:min(len(s.message), patternReach)]
			plain, _ = plainForm.write(make([]byte, len(message)), message, nil)
		}
		if at := p.expression().FindIndex(plain); at != nil {
			s.best, s.there = p.place, span{form: plainForm, from: at[0], to: at[1]}
		}
	}
}

// readStatus looks at the status that came beside the message.
func (s *search) readStatus() {
	if n := s.numbers.of(strconv.Itoa(s.httpStatus)); s.httpStatus != 0 && n != nil && s.isBetter(n.status) {
		s.best, s.there = n.status, span{beside: true}
	}
}

// readNumbers looks at the whole numbers of the message.
func (s *search) readNumbers() {
	if len(s.numbers.rules) == 0 {
		return
	}
	eachNumber(s.message, func(from, to int) {
		n := s.numbers.of(s.message[from:to])
		if n == nil {
			return
		}
		for _, found := range [...]struct {
			place int
			is    func(message string, from, to int) bool
		}{{n.code, isAnyNumber}, {n.status, s.isStatus}, {n.tiss, isTISSCode}} {
			if s.isBetter(found.place) && found.is(s.message, from, to) {
				s.best, s.there = found.place, span{from: from, to: to}
			}
		}
	})
}

// isStatus tells whether the number is the message's HTTP status; one that came beside it is more sure.
func (s *search) isStatus(message string, from, to int) bool {
	return s.httpStatus == 0 && isStatus(message, from, to)
}

// isBetter tells whether the matcher at place comes before what was found already; there is none at 0.
func (s *search) isBetter(place int) bool { return place > 0 && (s.best == 0 || place < s.best) }

func (s *search) match() Match {
	if s.best == 0 {
		return unknownError
	}
	m := &s.matchers[s.best-1]
	return Match{m.rule.Class, m.name, m.rule.Reason, m.rule.Team, m.rule.Hint, s.part()}
}

// part is what the best matcher matched, as it stands in the message.
func (s *search) part() string {
	switch {
	case s.there.beside:
		return strconv.Itoa(s.httpStatus)
	case s.there.form == nil:
		return s.message[s.there.from:s.there.to]
	default:
		return s.there.form.part(s.message, s.there.from, s.there.to)
	}
}
