package classify

import (
	"regexp"
	"slices"
	"strings"

	"retry-worker/internal/text"
)

// This file reads which part of a message tells what happened last.

var (
	// statusTries between two statuses tell that they are those of two tries, tryLists before the first one that several
	// follow.
	statusTries = []string{"tentativa", "attempt", "try", "retr", "depois", "em seguida", "por fim", "ultim", "then",
		"finally", "last", "agora", "now", "->", "=>"}
	tryLists = []string{"tentativas", "attempts", "tries", "retries"}
)

// laterTries lists the words that begin a try after the first: tentativa 2, second attempt.
func laterTries() []string {
	var all []string
	for _, try := range []string{"tentativa", "attempt", "try", "retry"} {
		for _, number := range strings.Fields("2 3 4 5 6 7 8 9") {
			all = append(all, try+" "+number, number+" "+try)
		}
		for _, ordinal := range strings.Fields("segunda terceira quarta quinta ultima second third last final") {
			all = append(all, ordinal+" "+try)
		}
	}
	return all
}

// lastTry returns where in plain the last of several tries begins; 0 where the message tells of one.
func (s *search) lastTry() int {
	if s.earlier.to == 0 {
		return s.laterTry
	}
	between := string(s.Plain[s.earlier.to:s.latest.from])
	start := -1
	for _, word := range statusTries {
		start = max(start, strings.LastIndex(between, word))
	}
	before := string(s.Plain[:s.earlier.to])
	if start < 0 && !slices.ContainsFunc(tryLists, func(word string) bool { return strings.Contains(before, word) }) {
		return s.laterTry
	}
	return max(s.laterTry, s.earlier.to+max(0, start))
}

// courtesies begin phrases that say nothing of what happened: tente novamente, mais tarde.
var courtesies = set("tente try mais aguarde repita por please retry")

// sentenceEnd is where what a number is said of ends.
var sentenceEnd = regexp.MustCompile(`[\n;|!?]|\. `)

// isOvertaken reports whether a sentence behind the marked code that decided tells of a passing fault: what was denied
// may be another batch, and a claim is given up at once on proof only.
func (s *search) isOvertaken() bool {
	if s.where == beside || !isNumber(s.Text[s.where.from:s.where.to]) {
		return false
	}
	rest := s.Text[s.where.to:]
	end := sentenceEnd.FindStringIndex(rest)
	if end == nil {
		return false
	}
	rest, _, _ = strings.Cut(rest[end[0]:], "\tat ") // a stack trace
	later := s.weigh(text.ReadWords(rest), 0, false)
	defer later.free()
	if later.best == none {
		return false
	}
	m := later.match(later.best, later.where)
	first, _, _ := strings.Cut(strings.ToLower(m.Text), " ")
	return m.Class == Transient && !courtesies[first]
}
