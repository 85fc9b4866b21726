package classify

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
