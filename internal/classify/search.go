package classify

import (
	"strconv"
	"sync"

	"retry-worker/internal/text"
)

// search is one message on its way through a classifier.
type search struct {
	*Classifier
	message string
	status  int
	// words of the message, folded, and what was found in them.
	words []byte
	hits  []hit
	// spare and offsets are room to find the place in the message of what was found.
	spare   []byte
	offsets []int32
	// best is the strongest matcher that was found, or none, and where.
	best  int
	where span
	// laterTry is where in words the last try begins that the message numbers; 0 where it numbers none.
	laterTry int
	// earlier and latest are the last two statuses in the message that differ; their to is 0 where there are none.
	earlier, latest span
	// explains tells that all that was found is kept.
	explains bool
	found    []finding
}

// role is what a needle is for.
type role uint8

const (
	codeRole     role = iota // matches anywhere in the normal form (R3)
	nameRole                 // matches as a word, negated or not
	phraseRole               // matches unless negated
	refusalRole              // refuses a thing
	approvalRole             // refuses a thing where negated
	thingRole                // may be refused
	contrastRole             // begins a clause
	tryRole                  // begins a try after the first
)

// none is the matcher of what belongs to no rule.
const none = -1

// hit is a needle that was found in the words.
type hit struct {
	use
	from, to int
}

// finding is a piece of evidence.
type finding struct {
	matcher int
	span    span
	lost    string
}

// form is what a span counts the bytes of.
type form uint8

const (
	inMessage form = iota
	inWords
	inNormal
	inPlain
	beside // the status that came beside the message
)

// span is a part of the message.
type span struct {
	from, to int
	in       form
}

// patternReach is how many bytes of a message patterns are compared with.
const patternReach = 64 << 10

// searches keeps the memory of finished ones.
var searches = sync.Pool{New: func() any { return new(search) }}

// search weighs the evidence. Where the message tells of several tries, only ranks 1 and 2 count of the earlier ones.
// The caller frees it.
func (c *Classifier) search(message string, status int, explains bool) *search {
	s := c.weigh(message, status, explains)
	if s.best != none && s.matchers[s.best].rank <= TISS {
		return s
	}
	start := s.lastTry()
	if start == 0 {
		return s
	}
	last := c.weigh(message[start:], status, explains)
	if last.best == none {
		last.free()
		return s
	}
	s.free()
	return last
}

// weigh searches one try.
func (c *Classifier) weigh(message string, status int, explains bool) *search {
	s := searches.Get().(*search)
	*s = search{
		Classifier: c, message: message, status: status, best: none, explains: explains,
		words: s.words[:0], hits: s.hits[:0], spare: s.spare, offsets: s.offsets,
	}
	var plain bool
	s.words, plain = text.Words(s.words, message, nil)
	s.readWords(plain)
	s.refuse()
	s.readStatus()
	s.readNumbers()
	s.readPatterns()
	return s
}

// free gives the memory back.
func (s *search) free() {
	s.Classifier, s.message, s.found = nil, "", nil
	if cap(s.words) <= patternReach {
		searches.Put(s)
	}
}

// readWords looks for codes and words. plain tells that the words are the message's normal form too.
func (s *search) readWords(plain bool) {
	s.Classifier.words.find(s.words, func(uses []use, end int) {
		for i := range uses {
			s.read(&uses[i], end, plain)
		}
	})
	if plain {
		return
	}
	s.spare = text.Normal(s.spare[:0], s.message, nil)
	s.Classifier.words.find(s.spare, func(uses []use, end int) {
		for _, u := range uses {
			if u.role == codeRole {
				s.add(u.matcher, span{end - u.length, end, inNormal}, "")
			}
		}
	})
}

// read takes up a needle that ends at end.
func (s *search) read(u *use, end int, plain bool) {
	if u.role == codeRole {
		if plain {
			s.add(u.matcher, span{end - u.length, end, inWords}, "")
		}
		return
	}
	from, to := end-u.length+1, end-1
	if u.open {
		to = wordEnd(s.words, end)
	}
	switch u.role {
	case nameRole:
		s.add(u.matcher, span{from, to, inWords}, "")
	case phraseRole:
		lost := ""
		if denied, _ := negated(s.words, from, to, 0); denied {
			lost = "negated"
		} else if s.matchers[u.matcher].rank == Refusal && isDoubted(s.words, from) {
			lost = "said of a case that may be"
		}
		s.add(u.matcher, span{from, to, inWords}, lost)
	case tryRole:
		s.laterTry = from
	case contrastRole:
		s.words[from-1] = text.Clause
	case thingRole: // the longest wins: "service code" is no service; of two rules' the first
		for n := len(s.hits); n > 0 && s.hits[n-1].role == thingRole && s.hits[n-1].from >= from; n-- {
			if s.hits[n-1].from == from && s.hits[n-1].to == to {
				return
			}
			s.hits = s.hits[:n-1]
		}
		s.hits = append(s.hits, hit{*u, from, to})
	default:
		s.hits = append(s.hits, hit{*u, from, to})
	}
}

// add takes up a piece of evidence, which may be lost.
func (s *search) add(matcher int, where span, lost string) {
	if s.explains {
		s.found = append(s.found, finding{matcher, where, lost})
	}
	if lost == "" && (s.best == none || matcher < s.best) {
		s.best, s.where = matcher, where
	}
}

// readStatus looks at the status that came beside the message.
func (s *search) readStatus() {
	if s.status == 0 {
		return
	}
	if n, known := s.numbers[strconv.Itoa(s.status)]; known && n.beside != none {
		s.add(n.beside, span{in: beside}, "")
	}
}

// readPatterns tries the patterns that are stronger than what was found.
func (s *search) readPatterns() {
	var plain string
	for _, p := range s.patterns {
		if s.best != none && p.matcher > s.best && !s.explains {
			continue
		}
		if plain == "" {
			plain = text.Plain(s.message[:min(len(s.message), patternReach)], nil)
		}
		if at := p.FindStringIndex(plain); at != nil {
			s.add(p.matcher, span{at[0], at[1], inPlain}, "")
		}
	}
}

// text returns a span as it stands in the message.
func (s *search) text(where span) string {
	if where.in == beside {
		return strconv.Itoa(s.status)
	}
	from, to := s.place(where)
	return s.message[from:to]
}

// place returns where in the message a span is.
func (s *search) place(where span) (from, to int) {
	offsets := s.offsets[:0]
	switch where.in {
	case inWords:
		s.spare, _ = text.Words(s.spare[:0], s.message, &offsets)
	case inNormal:
		s.spare = text.Normal(s.spare[:0], s.message, &offsets)
	case inPlain:
		text.Plain(s.message[:min(len(s.message), patternReach)], &offsets)
	default:
		return where.from, where.to
	}
	s.offsets, to = offsets, len(s.message)
	if where.to < len(offsets) {
		to = int(offsets[where.to])
	}
	return int(offsets[where.from]), to
}
