package classify

import (
	"slices"
	"strconv"
	"sync"
	"unicode"
	"unicode/utf8"

	"retry-worker/internal/text"
)

// search is one message on its way through a classifier.
type search struct {
	*Classifier
	*text.Words
	status int
	hits   []hit
	// places of the symbols of R3's form in the message.
	places []int32
	// best is the strongest matcher that was found, or none, and where.
	best  int
	where span
	// laterTry is where in plain the last try begins that the message numbers; 0 where it numbers none.
	laterTry int
	// earlier and latest are, in plain, the last two statuses that differ; their to is 0 where there are none.
	earlier, latest span
	// waiting is what waits found out.
	waiting *bool
	// explains tells that all that was found is kept.
	explains bool
	found    []finding
}

// role is what a needle is for.
type role uint8

const (
	nameRole     role = iota // matches as a word, negated or not
	phraseRole               // matches unless negated
	refusalRole              // refuses a thing
	approvalRole             // refuses a thing where negated
	thingRole                // may be refused
	contrastRole             // begins a clause
	tryRole                  // begins a try after the first
)

// none is the matcher of what belongs to no rule.
const none = -1

// hit is a needle that was found, the words from its first until before to.
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

// span is a part of the message, by its bytes.
type span struct{ from, to int }

// beside is where the status is that came beside the message.
var beside = span{none, none}

// patternReach is how many characters of a message patterns are compared with.
const patternReach = 64 << 10

// searches keeps the memory of finished ones.
var searches = sync.Pool{New: func() any { return new(search) }}

// search weighs the evidence. Where the message tells of several tries, only ranks 1 and 2 count of the earlier ones.
// The caller frees it.
func (c *Classifier) search(words *text.Words, status int, explains bool) *search {
	s := c.weigh(words, status, explains)
	if s.best != none && s.matchers[s.best].rank <= TISS {
		return s
	}
	start := s.lastTry()
	if start == 0 {
		return s
	}
	last := c.weigh(text.ReadWords(words.Text[words.Offsets[start]:]), status, explains)
	if last.best == none {
		last.free()
		return s
	}
	s.free()
	return last
}

// weigh searches one try.
func (c *Classifier) weigh(words *text.Words, status int, explains bool) *search {
	s := searches.Get().(*search)
	*s = search{Classifier: c, Words: words, status: status, best: none, explains: explains,
		hits: s.hits[:0], places: s.places[:0]}
	s.findCodes()
	s.findWords()
	s.refuse()
	if n := s.numbers[strconv.Itoa(status)]; n != nil && n[besideText] != none {
		s.add(n[besideText], beside, "")
	}
	s.readNumbers()
	s.readPatterns()
	return s
}

// free gives the memory back.
func (s *search) free() {
	s.Classifier, s.Words, s.found = nil, nil, nil
	if cap(s.places) < patternReach {
		searches.Put(s)
	}
}

// findCodes looks for codes in R3's form of the message: in upper case, every run of what is neither A-Z nor 0-9 is one
// gap.
func (s *search) findCodes() {
	state, last, next := int32(0), uint8(0), s.codes.next
	for i, r := range s.Text {
		if r >= utf8.RuneSelf {
			r = min(unicode.ToUpper(r), utf8.RuneSelf) // ſ is S
		}
		symbol := symbols[r]
		if symbol == gapSymbol && last == gapSymbol {
			continue
		}
		last, state, s.places = symbol, next[state][symbol], append(s.places, int32(i))
		for _, u := range s.codes.ends[state] {
			_, size := utf8.DecodeRuneInString(s.Text[i:])
			s.add(u.matcher, span{int(s.places[len(s.places)-u.length]), i + size}, "")
		}
	}
}

// findWords looks for names, phrases, and what refusals are made of.
func (s *search) findWords() { s.words.each(s.Words, s.take) }

// take takes up a needle that is the words from the from-th until before the to-th.
func (s *search) take(u use, from, to int) {
	switch u.role {
	case nameRole:
		s.add(u.matcher, s.spanOf(from, to), "")
	case phraseRole:
		lost := ""
		if denied, _ := s.negated(from, to, 0); denied {
			lost = "negated"
		} else if s.matchers[u.matcher].rank == Refusal && s.isDoubted(from) {
			lost = "said of a case that may be"
		} else if fieldNames[s.At(from)] && s.waits() {
			lost = "beside what passes"
		}
		s.add(u.matcher, s.spanOf(from, to), lost)
	case tryRole:
		s.laterTry = s.All[from].From
	case contrastRole:
		s.All[from].Before = text.Clause
	case thingRole:
		s.takeThing(hit{u, from, to})
	default:
		s.hits = append(s.hits, hit{u, from, to})
	}
}

// takeThing takes up a thing. Of those that overlap the longest wins: "service code" is no service; of two rules' the
// first, but for a senha that authorises.
func (s *search) takeThing(thing hit) {
	first := len(s.hits)
	for first > 0 && s.hits[first-1].to > thing.from {
		first--
	}
	isThing := func(h hit) bool { return h.role == thingRole }
	covers := func(h hit) bool { return isThing(h) && h.from <= thing.from && h.to >= thing.to }
	switch i := slices.IndexFunc(s.hits[first:], covers); {
	case i < 0:
		rest := slices.DeleteFunc(s.hits[first:], isThing)
		s.hits = append(s.hits[:first+len(rest)], thing)
	case s.hits[first+i].length == thing.length && s.authorises(&thing):
		s.hits[first+i].matcher = thing.matcher
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

// readPatterns tries the patterns that are stronger than what was found.
func (s *search) readPatterns() {
	for _, p := range s.patterns {
		if s.best != none && p.matcher > s.best && !s.explains {
			continue
		}
		if at := p.FindIndex(s.Plain[:min(len(s.Plain), patternReach)]); at != nil {
			s.add(p.matcher, s.inText(span{at[0], at[1]}), "")
		}
	}
}

// spanOf returns the span of some words.
func (s *search) spanOf(from, to int) span {
	return s.inText(span{s.All[from].From, s.All[to-1].To})
}

// inText returns where in the message a part of plain is.
func (s *search) inText(plain span) span {
	return span{int(s.Offsets[plain.from]), int(s.Offsets[plain.to])}
}
