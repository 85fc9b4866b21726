package classify

import (
	"bytes"
	"math"
	"slices"
	"sort"
	"strconv"
	"sync"
	"unicode"
	"unicode/utf8"
)

// search is the state of classifying one message.
type search struct {
	*Classifier
	reading
	status int
	hits   []hit
	// form is R3's form of the message: upper case, with every run of other characters than A-Z and 0-9 as one _. places
	// holds the place in the message of each of its characters.
	form   []byte
	places []int32
	// found holds the evidence so far, after NoMatch, and best is the number of the strongest piece that counts.
	found []Found
	best  int
	// laterTry is where in plain the last numbered try begins; 0 if tries are not numbered.
	laterTry int
	// earlier and latest are the places in plain of the last two statuses that differ; to is 0 if there is none.
	earlier, latest span
	// said is what the message tells. notSent is true if the message tells that the claim was not sent. asks holds, for
	// each request to wait, the word behind it.
	said    Said
	notSent bool
	asks    []int
	// waiting caches the answer of waits.
	waiting *bool
}

// role is what an item of a list is for.
type role uint8

const (
	nameRole     role = iota // matches as a word, negated or not
	phraseRole               // matches unless negated
	refusalRole              // refuses a thing
	approvalRole             // refuses a thing where negated
	thingRole                // may be refused
	contrastRole             // begins a clause
	tryRole                  // begins a try after the first
	perhapsRole              // tells that the portal may have taken the claim
	notSentRole              // tells that the claim was not sent
	waitRole                 // asks to wait
	patternRole              // matches unless negated
	codeRole                 // matches in the original message (R3)
	besideRole               // is the status beside the text
	statusRole               // is a status in the text
	tissRole                 // is a code of table 38
)

// none is the matcher of a needle that belongs to no rule.
const none = -1

// hit is a needle that was found: the words [from, to).
type hit struct {
	use
	from, to int
}

// span is a part of the message, in bytes.
type span struct{ from, to int }

// beside is the span of the status that came beside the message.
var beside = span{none, none}

const (
	// patternReach is how many characters of a message are compared with patterns.
	patternReach = 64 << 10
	// mostMatches is how many matches of a pattern are looked at, as the first ones may be negated.
	mostMatches = 8
)

// searches recycles the memory of finished searches.
var searches = sync.Pool{New: func() any { return new(search) }}

// search weighs the evidence in a message. Of several tries the last decides, unless evidence of rank 1 or 2 is in any
// of them; what the earlier ones tell counts, too. The caller frees the result.
func (c *Classifier) search(message string, status int) *search {
	s := c.weigh(message, status)
	if s.strongest().Rank <= TISS {
		return s
	}
	start := s.lastTry()
	if start == 0 {
		return s
	}
	last := c.weigh(message[s.offsets[start]:], status)
	if last.best == 0 {
		last.free()
		return s
	}
	last.said = s.said
	s.free()
	return last
}

// weigh searches a message without telling tries apart.
func (c *Classifier) weigh(message string, status int) *search {
	s := searches.Get().(*search)
	*s = search{Classifier: c, reading: s.reading, status: status, found: append(s.found[:0], nothing), hits: s.hits[:0],
		form: s.form[:0], places: s.places[:0], asks: s.asks[:0]}
	s.read(message)
	s.findCodes()
	s.needles.each(s.text, func(u use, from, to int) { s.take(u, s.wordsBefore(from), s.wordsBefore(to)) })
	s.refuse()
	if matcher := s.statusMatcher(besideRole, strconv.Itoa(status)); matcher != none {
		s.add(matcher, beside, "")
	}
	s.readNumbers()
	s.readPatterns()
	s.conclude()
	return s
}

// mostKept is the longest message whose memory is recycled.
const mostKept = 64 << 10

// free gives the memory back.
func (s *search) free() {
	s.Classifier, s.message = nil, ""
	clear(s.found)
	if cap(s.plain) <= mostKept {
		searches.Put(s)
	}
}

// findCodes looks for codes in R3's form of the message.
func (s *search) findCodes() {
	for i, r := range s.message {
		c := byte('_')
		if r = unicode.ToUpper(r); 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' { // ſ is S
			c = byte(r)
		}
		if last := len(s.form) - 1; last < 0 || c != '_' || s.form[last] != '_' {
			s.form, s.places = append(s.form, c), append(s.places, int32(i))
		}
	}
	s.codes.each(s.form, func(u use, from, to int) {
		last := int(s.places[to-1])
		_, size := utf8.DecodeRuneInString(s.message[last:])
		s.add(u.matcher, span{int(s.places[from]), last + size}, "")
	})
}

// take records a needle that was found in the words [from, to): a name, a phrase, or a part of a refusal.
func (s *search) take(u use, from, to int) {
	switch u.role {
	case nameRole:
		s.add(u.matcher, s.spanOf(from, to), "")
	case phraseRole:
		lost := ""
		if denied, _ := s.negated(from, to, 0); denied {
			lost = "negated"
		} else if s.matchers[u.matcher].Rank == Refusal && s.isDoubted(from) {
			lost = "said of a case that may be"
		} else if fieldNames[s.at(from)] && s.waits() {
			lost = "beside what passes"
		}
		s.add(u.matcher, s.spanOf(from, to), lost)
	case tryRole:
		s.laterTry = s.words[from].from
	case contrastRole:
		s.words[from].before = clauseGap
	case perhapsRole, notSentRole:
		s.hear(u.role)
	case waitRole:
		if s.at(from-1) != "ao" { // as in "timeout ao aguardar"
			s.asks = append(s.asks, to)
		}
	case thingRole:
		s.takeThing(hit{u, from, to})
	default:
		s.hits = append(s.hits, hit{u, from, to})
	}
}

// takeThing records a thing. Of overlapping things the longest wins: "service code" is no service. If two rules have a
// thing of the same words the first wins, except for a senha that authorises.
func (s *search) takeThing(thing hit) {
	first := len(s.hits)
	for first > 0 && s.hits[first-1].to > thing.from {
		first--
	}
	isThing := func(h hit) bool { return h.role == thingRole }
	covers := func(h hit) bool { return isThing(h) && h.from <= thing.from && h.to >= thing.to }
	overlapping := s.hits[first:]
	i := slices.IndexFunc(overlapping, covers)
	if i < 0 {
		rest := slices.DeleteFunc(overlapping, isThing)
		s.hits = append(s.hits[:first+len(rest)], thing)
		return
	}
	h := &overlapping[i]
	if h.from == thing.from && h.to == thing.to && (thing.matcher < h.matcher || s.authorises(&thing)) {
		h.matcher = thing.matcher
	}
}

// nothing is weaker than any evidence.
var nothing = Found{Match: NoMatch, matcher: math.MaxInt}

// add records a piece of evidence. lost says why it does not count; empty if it does.
func (s *search) add(matcher int, where span, lost string) {
	f := Found{s.matchers[matcher], lost, matcher}
	if where == beside {
		f.Text = strconv.Itoa(s.status)
	} else {
		f.Text = s.message[where.from:where.to]
	}
	if s.found = append(s.found, f); lost == "" && matcher < s.strongest().matcher {
		s.best = len(s.found) - 1
	}
}

// strongest returns the strongest evidence so far that counts.
func (s *search) strongest() *Found { return &s.found[s.best] }

// readPatterns tries the patterns.
func (s *search) readPatterns() {
	reach := s.plain[:min(len(s.plain), patternReach)]
	isThere := func(needed string) bool { return bytes.Contains(reach, []byte(needed)) }
	for _, p := range s.patterns {
		if p.needed != nil && !slices.ContainsFunc(p.needed, isThere) {
			continue
		}
		for _, at := range p.FindAllIndex(reach, mostMatches) {
			lost := ""
			if s.denies(at[0], at[1]) {
				lost = "negated"
			}
			if s.add(p.matcher, s.inText(span{at[0], at[1]}), lost); lost == "" {
				break
			}
		}
	}
}

// denies reports whether the first or the last word of a part of plain is negated: "not connection refused", "token não
// expirou".
func (s *search) denies(from, to int) bool {
	first := sort.Search(len(s.words), func(i int) bool { return s.words[i].to > from })
	end := sort.Search(len(s.words), func(i int) bool { return s.words[i].from >= to })
	isNegated := func(i int) bool {
		denied, _ := s.negated(i, end, 0)
		return denied
	}
	return isNegated(first) || isNegated(end-1)
}

func (s *search) spanOf(from, to int) span {
	return s.inText(span{s.words[from].from, s.words[to-1].to})
}

// inText returns the span in the message of a span in plain.
func (s *search) inText(plain span) span {
	return span{int(s.offsets[plain.from]), int(s.offsets[plain.to])}
}

// needles are texts that another text is compared with, all at once. Each has two characters at least.
type needles struct {
	// uses maps each beginning of a needle to the uses of the needle that ends there.
	uses map[string][]use
	// pairs holds the first two characters of each needle: most places of a text begin none.
	pairs [1 << 16]bool
}

// use says what a needle stands for. A needle may have several uses.
type use struct {
	role role
	// matcher is the matcher's number; none if the role belongs to no rule.
	matcher int
}

// add puts in a needle with its use.
func (n *needles) add(needle string, u use) {
	for i := range needle {
		before := n.uses[needle[:i]]
		n.uses[needle[:i]] = before // there, if only as a beginning
	}
	n.uses[needle] = append(n.uses[needle], u)
	n.pairs[pair(needle[0], needle[1])] = true
}

func pair(a, b byte) int { return int(a)<<8 | int(b) }

// each calls found for each use of every needle in text[from:to].
func (n *needles) each(text []byte, found func(u use, from, to int)) {
	for from := range max(0, len(text)-1) {
		if !n.pairs[pair(text[from], text[from+1])] {
			continue
		}
		for to := from + 2; to <= len(text); to++ {
			uses, begins := n.uses[string(text[from:to])]
			if !begins {
				break
			}
			for _, u := range uses {
				found(u, from, to)
			}
		}
	}
}
