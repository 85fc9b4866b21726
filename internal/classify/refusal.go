package classify

import (
	"regexp"
	"strings"

	"retry-worker/internal/text"
)

// A refusal speaks of the nearest thing in its clause: "conexão recusada ao enviar o lote" refuses the connection.

const (
	// maxDistance between a refusal and the thing that it speaks of, in words.
	maxDistance = 8
	// complement is the distance that a preposition behind the refusal adds: "não apresentado na conexão".
	complement = 2
	// maxFillers that may stand between a negation and what it negates, beside one other word.
	maxFillers = 8
	// subject is how many words more may stand between a quantifier and what is said of its noun.
	subject = 2
)

// negated reports whether the words [from, to) are negated: by a negation at most others words before them, or by "false"
// or 0 behind them. modal reports that the negation forbids: "não pode ser negativo".
func (s *search) negated(from, to, others int) (denied, modal bool) {
	for i := 0; i < maxFillers && s.GapBefore(from) == text.Space; i++ {
		from--
		switch word := s.At(from); {
		case quantifiers[word] || word == "longer" && negators[s.At(from-1)]:
			return true, modal
		case i == 0 && word == "0", negators[word] && (word != "no" || i == 0),
			word == "t" && strings.HasSuffix(s.At(from-1), "n"): // isn't
			return others >= 0 || s.isFalse(to), modal || word == "cannot"
		case modals[word]:
			modal = true
		case word == "no": // "hash no XML inválido"
			return s.isFalse(to), false
		case fillers[word] || word == "e" && negators[s.At(from-1)]: // não é
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

// knowing begin the words before what is not known: "não sabemos se".
var knowing = regexp.MustCompile(`^(?:sab|sei$|soub|confir|inform|verifi|certeza$|clar[oa]$|duvida)`)

// isDoubted reports whether the words from the from-th on are said of a case that may be: "verificar se a senha é
// inválida".
func (s *search) isDoubted(from int) bool {
	for i := 0; i < maxDistance && s.GapBefore(from) == text.Space; i++ {
		from--
		word := s.At(from)
		last := s.At(from - 1)
		isFirst := s.GapBefore(from) != text.Space || isInfinitive(last) || knowing.MatchString(last)
		if word == "whether" || word == "if" || conditions[word] && isFirst {
			return true
		}
	}
	return false
}

// isFalse reports whether what ends before the word to is called false: valid=false, recusadas: 0.
func (s *search) isFalse(to int) bool {
	word := s.At(to)
	return s.GapBefore(to) == text.Pause && (word == "false" || word == "0" || word == "falso")
}

// isLacking reports whether the thing that begins at a word is said not to be there: sem vínculo, não possui cadastro.
func (s *search) isLacking(from int) bool {
	word := s.At(from - 1)
	return s.GapBefore(from) == text.Space &&
		(lacks[word] || (possession[word] || word == "such") && negators[s.At(from-2)])
}

// isInfinitive reports whether a Portuguese word is a verb that a negation stops at: "não foi possível enviar a guia".
func isInfinitive(word string) bool {
	n := len(word)
	return n > 3 && word[n-1] == 'r' && (word[n-2] == 'a' || word[n-2] == 'e' || word[n-2] == 'i')
}

// refuse finds out what each refusal speaks of.
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

// presume takes up a refusal. It is lost where it is but a presumption, and passes; not a rule's own word, such as
// duplicado.
func (s *search) presume(refusal *hit, matcher int, where span) {
	lost, isOwn := "", refusal.role == refusalRole && refusal.matcher != none
	isWeaker := s.best != none && s.best <= matcher && !s.explains // whether it is lost changes nothing
	if s.matchers[matcher].rank == Refusal && !isOwn && !isWeaker && s.passes(refusal) {
		lost = "beside what passes"
	}
	s.add(matcher, where, lost)
}

// negatesNext reports whether the refusal i is but the negation of the one behind it: "no longer rejected".
func (s *search) negatesNext(i int) bool {
	h := &s.hits[i]
	return i+1 < len(s.hits) && s.hits[i+1].role == refusalRole && s.hits[i+1].from == h.to && negators[s.At(h.from)]
}

// isEither reports whether the refusal i is one of two answers that may be: "aceita ou recusada".
func (s *search) isEither(i int) bool {
	h := &s.hits[i]
	isOther := func(j, end, first int) bool {
		return s.hits[j].role == approvalRole && first == end+1 && alternatives[s.At(end)]
	}
	return h.role == refusalRole && (i > 0 && isOther(i-1, s.hits[i-1].to, h.from) ||
		i+1 < len(s.hits) && isOther(i+1, h.to, s.hits[i+1].from))
}

// thingOf returns the thing that the refusal i speaks of: the nearest in its clause, the one before it of two; nil for
// none.
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
			if h.from > refusal.to && prepositions[s.At(h.from-1)] {
				distance += complement
			}
			if agents[s.At(h.from)] {
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

// head returns the thing that the thing i is of, unless that is the more telling one: "número da carteira".
func (s *search) head(i int) *hit {
	t := &s.hits[i]
	for j := i - 1; j >= max(0, i-maxDistance) && prepositions[s.At(t.from-1)]; j-- {
		of := &s.hits[j]
		if of.role == thingRole && of.to == t.from-1 && (of.matcher <= t.matcher || t.matcher == none) {
			return s.head(j)
		}
	}
	return t
}

// distance returns how many words stand between the end of some and the first of others, more than maxDistance where a
// clause ends between them.
func (s *search) distance(end, first int) int {
	n := -1
	for i := end; i <= first && n <= maxDistance; i++ {
		switch s.GapBefore(i) {
		case text.Clause:
			return maxDistance + 1
		case text.Pause:
			n += 2
		case text.Space:
			n++
		}
	}
	return n
}
