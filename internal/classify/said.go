package classify

import (
	"regexp"
	"strconv"
	"time"
)

// Said is what a text tells besides its class.
type Said struct {
	// Perhaps reports that the portal may have taken the claim: words or a status say so, and nothing shows that it was
	// not sent (R33).
	Perhaps bool
	// Wait is the time that the text asks to wait, such as "tente após 1 hora" (R37); 0 if it does not ask.
	Wait time.Duration
}

// sayings maps the lists of phrases that tell something to the phrases' roles. They match within words, too.
var sayings = map[string]role{"perhaps": perhapsRole, "not sent": notSentRole, "wait": waitRole}

// ofStatus maps HTTP statuses to the roles of phrases that say the same.
var ofStatus = map[string]role{"429": notSentRole, "503": notSentRole, "502": perhapsRole, "504": perhapsRole}

// hear records what a phrase or a status of role r tells of whether the claim was sent.
func (s *search) hear(r role) {
	s.said.Perhaps = s.said.Perhaps || r == perhapsRole
	s.notSent = s.notSent || r == notSentRole
}

// conclude completes said once the words and numbers of the message are read.
func (s *search) conclude() {
	s.hear(ofStatus[strconv.Itoa(s.status)])
	s.said.Perhaps = s.said.Perhaps && !s.notSent
	for _, to := range s.asks[max(0, len(s.asks)-mostAsks):] {
		s.said.Wait = max(s.said.Wait, waitIn(s.clauseBehind(to)))
	}
}

const (
	// mostAsks is how many requests to wait are read, the last ones, so that a long text does not take seconds.
	mostAsks = 32
	// farthest is how many words after the word that asks to wait the time may stand.
	farthest = 10
)

// clauseBehind returns the rest of a clause, from a word on.
func (r *reading) clauseBehind(from int) []byte {
	to := from
	for to-from < farthest && r.gapBefore(to) != clauseGap {
		to++
	}
	if to == from {
		return nil
	}
	return r.plain[r.words[from].from-1 : r.words[to-1].to]
}

// times match 30 min, 30 (trinta) min, uma hora, 1h30, 1 hora e 30 minutos or half an hour; a number after a comma is
// only a part of one.
var times = regexp.MustCompile(`[^0-9a-z.,](?:([0-9]{1,4})(?: \([a-z ]{1,30}\))? ?|` +
	`(um|uma|one|an?) |(meia|half(?: an?)?) )` +
	`(?:(s|segs?|segundos?|secs?|seconds?)|(mins?|minutos?|minutes?)|(dias?|days?)|` +
	`(?:hs?|hrs?|horas?|hours?)(?:([0-9]{2})(?:m|min)?|(?: e| and)? ([0-9]{1,2}) ?(?:m|mins?|minutos?|minutes?))?)\b`)

// waitIn returns the longest time to wait that clause names, 0 if there is none.
func waitIn(clause []byte) (longest time.Duration) {
	if at := otherwise.FindIndex(clause); at != nil {
		clause = clause[:at[0]]
	}
	for _, m := range times.FindAllSubmatch(clause, -1) {
		n, unit := 1, time.Hour
		switch {
		case m[4] != nil:
			unit = time.Second
		case m[5] != nil:
			unit = time.Minute
		case m[6] != nil:
			unit = 24 * time.Hour
		}
		if m[1] != nil {
			n, _ = strconv.Atoi(string(m[1]))
		} else if m[3] != nil {
			unit /= 2
		}
		minutes, _ := strconv.Atoi(string(m[7]) + string(m[8])) // one is empty
		longest = max(longest, time.Duration(n)*unit+time.Duration(minutes)*time.Minute)
	}
	return longest
}
