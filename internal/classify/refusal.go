package classify

import (
	"bytes"
	"slices"
	"strings"
)

// A refusal refers to the nearest thing in its clause: in "conexão recusada ao enviar o lote" the connection is
// refused.

const (
	// maxDistance is the largest distance between a refusal and its thing, in words.
	maxDistance = 8
	// complement is added to the distance if a preposition stands between the refusal and a thing after it: "não
	// apresentado na conexão".
	complement = 2
	// maxFillers is how many words before another are searched for its negation.
	maxFillers = 8
	// subject is how many more words may stand between a quantifier and the predicate of its noun.
	subject = 2
)

// negated reports whether the words [from, to) are negated: by a negation with at most others words between, or by
// "false" or 0 after them. modal reports whether the negation forbids: "não pode ser negativo".
func (s *search) negated(from, to, others int) (denied, modal bool) {
	for i := 0; i < maxFillers && s.gapBefore(from) == spaceGap; i++ {
		from--
		switch word := s.at(from); {
		case quantifiers[word] || word == "longer" && negators[s.at(from-1)]:
			return true, modal
		case i == 0 && word == "0", negators[word] && (word != "no" || i == 0),
			word == "t" && strings.HasSuffix(s.at(from-1), "n"): // isn't
			return others >= 0 || s.isFalse(to), modal || word == "cannot"
		case modals[word]:
			modal = true
		case word == "no": // "hash no XML inválido"
			return s.isFalse(to), false
		case fillers[word] || word == "e" && negators[s.at(from-1)]: // não é
		case alternatives[word]: // não recusada ou glosada
			from = max(0, from-1)
		case others == -subject || isInfinitive(word):
			return s.isFalse(to), false
		default:
			others--
		}
	}
	return s.isFalse(to), false
}

// isDoubted reports whether the words at from only state a possible case: "verificar se a senha é inválida".
func (s *search) isDoubted(from int) bool {
	for first := from - maxDistance; from > first && s.gapBefore(from) == spaceGap; {
		from--
		word, last := s.at(from), s.at(from-1)
		isFirst := s.gapBefore(from) != spaceGap || isInfinitive(last) || knowing.MatchString(last)
		if word == "whether" || word == "if" || conditions[word] && isFirst {
			return true
		}
	}
	return false
}

// isFalse reports whether the words before to are said to be false: valid=false, recusadas: 0.
func (s *search) isFalse(to int) bool {
	word := s.at(to)
	return s.gapBefore(to) == pauseGap && (word == "false" || word == "0" || word == "falso")
}

// isLacking reports whether the thing at word from is said to be missing: sem vínculo, não possui cadastro.
func (s *search) isLacking(from int) bool {
	word := s.at(from - 1)
	return s.gapBefore(from) == spaceGap &&
		(lacks[word] || (possession[word] || word == "such") && negators[s.at(from-2)])
}

// isInfinitive reports whether a word looks like a Portuguese infinitive, beyond which a negation does not reach: "não
// foi possível enviar a guia".
func isInfinitive(word string) bool {
	n := len(word)
	return n > 3 && word[n-1] == 'r' && (word[n-2] == 'a' || word[n-2] == 'e' || word[n-2] == 'i')
}

// refuse finds the thing that each refusal refers to.
func (s *search) refuse() {
	for i := range s.hits {
		h := &s.hits[i]
		if h.role == thingRole && h.matcher != none && s.isLacking(h.from) {
			s.add(h.matcher, s.spanOf(h.from, h.to), "")
		}
		if h.role != refusalRole && h.role != approvalRole {
			continue
		}
		if s.isDoubted(h.from) || s.negatesNext(i) || s.isEither(i) {
			continue
		}
		denied, modal := s.negated(h.from, h.to, 1)
		isRefusal := denied == (h.role == approvalRole) || modal
		if isRefusal && h.matcher != none && h.role == approvalRole {
			s.presume(h, h.matcher, s.spanOf(h.from, h.to))
			continue
		}
		thing := s.thingOf(i)
		switch {
		case thing == nil || thing.matcher == none:
		case isRefusal:
			matcher := thing.matcher
			if h.matcher != none {
				matcher = h.matcher
			}
			s.presume(h, matcher, s.spanOf(min(h.from, thing.from), max(h.to, thing.to)))
		case h.role == refusalRole:
			s.add(thing.matcher, s.spanOf(h.from, h.to), "negated")
		}
	}
}

// presume records a refusal. A mere presumption is lost if the fault passes; a rule's own word of refusal, such as
// duplicado, is not.
func (s *search) presume(refusal *hit, matcher int, where span) {
	lost, isOwn := "", refusal.role == refusalRole && refusal.matcher != none
	isWeaker := s.strongest().matcher <= matcher // then losing it changes nothing
	if s.matchers[matcher].Rank == Refusal && !isOwn && !isWeaker && s.passes(refusal) {
		lost = "beside what passes"
	}
	s.add(matcher, where, lost)
}

// negatesNext reports whether the refusal i only negates the one after it: "no longer rejected".
func (s *search) negatesNext(i int) bool {
	h := &s.hits[i]
	return i+1 < len(s.hits) && s.hits[i+1].role == refusalRole && s.hits[i+1].from == h.to && negators[s.at(h.from)]
}

// isEither reports whether the refusal i is one of two possible answers: "aceita ou recusada".
func (s *search) isEither(i int) bool {
	h := &s.hits[i]
	isOther := func(j, end, first int) bool {
		return s.hits[j].role == approvalRole && first == end+1 && alternatives[s.at(end)]
	}
	return h.role == refusalRole && (i > 0 && isOther(i-1, s.hits[i-1].to, h.from) ||
		i+1 < len(s.hits) && isOther(i+1, h.to, s.hits[i+1].from))
}

// thingOf returns the thing that the refusal i refers to: the nearest in its clause, on a tie the one before the
// refusal; nil if there is none.
func (s *search) thingOf(i int) *hit {
	refusal := &s.hits[i]
	nearest, least := none, maxDistance+1
	for _, step := range [...]int{-1, 1} {
		for j := i + step; 0 <= j && j < len(s.hits); j += step {
			h := &s.hits[j]
			from, to := min(h.to, refusal.to), max(h.from, refusal.from)
			if to < from { // they overlap
				continue
			}
			distance := s.distance(from, to)
			if distance > maxDistance {
				break
			}
			if step == 1 && prepositions[s.at(h.from-1)] {
				distance += complement
			}
			if agents[s.at(h.from)] {
				distance = maxDistance
			}
			if h.role == thingRole && distance < least {
				nearest, least = j, distance
			}
		}
	}
	if nearest == none {
		return nil
	}
	return s.head(nearest)
}

// head returns the thing that the thing i belongs to, unless i tells more: "número da carteira".
func (s *search) head(i int) *hit {
	t := &s.hits[i]
	for j := i - 1; j >= max(0, i-maxDistance) && prepositions[s.at(t.from-1)]; j-- {
		of := &s.hits[j]
		if of.role == thingRole && of.to == t.from-1 && (of.matcher <= t.matcher || t.matcher == none) {
			return s.head(j)
		}
	}
	return t
}

// distance returns how many words stand between two places, or more than maxDistance if a clause ends between them.
func (s *search) distance(end, first int) int {
	n := -1
	for i := end; i <= first && n <= maxDistance; i++ {
		switch s.gapBefore(i) {
		case clauseGap:
			return maxDistance + 1
		case pauseGap:
			n += 2
		case spaceGap:
			n++
		}
	}
	return n
}

// A refusal beside a lock, a time limit or a request to try again tells of a passing fault: "registro em uso
// (bloqueado), tente novamente". A fault that somebody must correct, or that takes days, does not pass.

// passingReach is how many words on each side of a refusal are looked at.
const passingReach = 16

// passes reports whether the text beside a refusal says that it passes.
func (s *search) passes(refusal *hit) bool {
	beside := s.clauseOf(refusal)
	word := s.at(refusal.from)
	return (holds.Match(beside) || momentary.MatchString(word) && asksAgain(beside) ||
		turnedDown.MatchString(word) && later.Match(beside)) && !tasks.Match(beside)
}

// asksAgain reports whether a text asks to try again, at once or later.
func asksAgain(plain []byte) bool { return requests.Match(plain) || later.Match(plain) }

// clauseOf returns the clause of a hit, including courtesies after it.
func (s *search) clauseOf(h *hit) []byte {
	from, to := h.from, h.to
	for h.from-from < passingReach && s.gapBefore(from) != clauseGap {
		from--
	}
	for to-h.to < passingReach && (s.gapBefore(to) != clauseGap || courtesies[s.at(to)]) {
		to++
	}
	return s.plain[s.words[from].from:s.words[to-1].to]
}

// waits reports whether a message asks to try again, or tells of work in progress. Then a status, or a field's name, is
// no refusal.
func (s *search) waits() bool {
	if s.waiting == nil {
		message := s.plain[:min(len(s.plain), patternReach)]
		answer := asksAgain(message) && !tasks.Match(message)
		s.waiting = &answer
	}
	return *s.waiting
}

// authorises reports whether thing is a senha that means an authorisation's number. Then its second rule counts.
func (s *search) authorises(thing *hit) bool {
	clause := s.clauseOf(thing)
	return s.at(thing.from) == "senha" && authorised.Match(clause) && !accessed.Match(clause)
}

// This file finds the part of a message that tells of the last try.

// laterTries lists the phrases that announce a second or later try: tentativa 2, second attempt.
func laterTries() []string {
	var all []string
	for _, try := range lists["try"] {
		for _, number := range strings.Fields("2 3 4 5 6 7 8 9") {
			all = append(all, try+" "+number, number+" "+try)
		}
		for _, ordinal := range lists["ordinals"] {
			all = append(all, ordinal+" "+try)
		}
	}
	return all
}

// lastTry returns where in plain the last of several tries begins; 0 if the message tells of only one.
func (s *search) lastTry() int {
	if s.earlier.to == 0 {
		return s.laterTry
	}
	between := string(s.plain[s.earlier.to:s.latest.from])
	start := -1
	for _, word := range lists["next try"] {
		start = max(start, strings.LastIndex(between, word))
	}
	isBefore := func(word string) bool { return bytes.Contains(s.plain[:s.earlier.to], []byte(word)) }
	if start < 0 && !slices.ContainsFunc(lists["several tries"], isBefore) {
		return s.laterTry
	}
	return max(s.laterTry, s.earlier.to+max(0, start))
}
