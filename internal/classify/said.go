package classify

import (
	"regexp"
	"strconv"
	"time"

	"retry-worker/internal/text"
)

// Said is what a text tells besides its class.
type Said struct {
	// Perhaps reports that the portal may have taken the claim: words or a status say so, and nothing shows that it was
	// not sent (R33).
	Perhaps bool
	// Wait is the time that the text asks to wait, such as "tente após 1 hora" (R37); 0 if it does not ask.
	Wait time.Duration
}

// The roles of phrases.
const (
	perhapsRole role = iota
	notSentRole
	waitRole
	saidRoles
)

// sayings finds all phrases.
var sayings = func() automaton {
	a := newAutomaton()
	for r, list := range [saidRoles]string{"perhaps", "not sent", "wait"} {
		for _, phrase := range lists[list] {
			a.add(phrase, use{role: role(r), length: 1})
		}
	}
	a.build()
	return a
}()

// ofStatus maps HTTP statuses to the roles of phrases that say the same.
var ofStatus = map[string]role{"429": notSentRole, "503": notSentRole, "502": perhapsRole, "504": perhapsRole}

// Says returns what a text and the HTTP status beside it (0: none) tell.
func Says(words *text.Words, status int) (said Said) {
	var found [saidRoles]bool
	sayings.each(words, func(u use, from, to int) {
		if found[u.role] = true; u.role == waitRole && words.At(from-1) != "ao" { // as in "timeout ao aguardar"
			said.Wait = max(said.Wait, waitIn(clauseBehind(words, to)))
		}
	})
	if says, ok := ofStatus[strconv.Itoa(status)]; ok {
		found[says] = true
	}
	eachNumber(words.Plain, func(from, to int) {
		if says, ok := ofStatus[string(words.Plain[from:to])]; ok && status == 0 && isStatus(words.Plain, from, to) {
			found[says] = true
		}
	})
	said.Perhaps = found[perhapsRole] && !found[notSentRole]
	return said
}

// farthest is how many words after the word that asks to wait the time may stand.
const farthest = 10

// clauseBehind returns the rest of a clause, from a word on.
func clauseBehind(words *text.Words, from int) []byte {
	to := from
	for to-from < farthest && words.GapBefore(to) != text.Clause {
		to++
	}
	if to == from {
		return nil
	}
	return words.Plain[words.All[from].From-1 : words.All[to-1].To]
}

var (
	// times match 30 min, 30min, uma hora or half an hour; a number after a comma is only a part of one.
	times = regexp.MustCompile(`[^0-9a-z.,](?:([0-9]{1,4}) ?|(um|uma|one|an?) |(meia|half(?: an?)?) )` +
		`(?:(s|segs?|segundos?|secs?|seconds?)|(mins?|minutos?|minutes?)|(hs?|hrs?|horas?|hours?))\b`)
	// otherwise begins a time that is no request to wait: a time of day, a time that has passed, or a time-out.
	otherwise = regexp.MustCompile(`\b(?:d?as|ha|fazem|faz|ago|since|failed|falhou|falharam|failure|esgotad[oa]|exceeded` +
		`|excedid[oa]|expired|expirou|timeout|timed|attempts?|tentativas?|limite?)\b`)
)

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
		}
		if m[1] != nil {
			n, _ = strconv.Atoi(string(m[1]))
		} else if m[3] != nil {
			unit /= 2
		}
		longest = max(longest, time.Duration(n)*unit)
	}
	return longest
}
