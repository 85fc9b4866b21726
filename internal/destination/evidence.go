package destination

import (
	"slices"
	"time"

	"retry-worker/internal/classify"
)

// slots is how many slots a window has. Counts are forgotten a slot at a time.
const slots = 12

// Evidence counts admissions, failures and answers while a destination is up.
type Evidence struct {
	// Window holds the counts of the window's slots, those of slot i at i modulo slots. Slot is the newest.
	Window [slots]Counts `json:"window,omitzero"`
	Slot   int64         `json:"slot"`
	// Total counts all admissions. Streak holds Total at each of the last failures in a row, the oldest first; they
	// began at StreakSince.
	Total       int64     `json:"total"`
	Streak      []int64   `json:"streak,omitempty"`
	StreakSince time.Time `json:"streakSince,omitzero"`
}

// Counts are numbers of claims.
type Counts struct {
	Admitted int `json:"admitted,omitempty"`
	Failed   int `json:"failed,omitempty"`
	Answered int `json:"answered,omitempty"`
}

// turn forgets the counts before the window.
func (e *Evidence) turn(within time.Duration, now time.Time) {
	slot := now.UnixNano() / max(1, int64(within)/slots)
	for i := max(e.Slot, slot-slots) + 1; i <= slot; i++ {
		e.Window[i%slots] = Counts{}
	}
	if slot < e.Slot-slots || slot > e.Slot { // the clock or the window's length may have changed
		e.Slot = slot
	}
}

func (e *Evidence) admit(n int) {
	e.Window[e.Slot%slots].Admitted += n
	e.Total += int64(n)
}

// fail counts a failure. It copies Streak, as other copies of the State share it.
func (e *Evidence) fail(now time.Time) {
	e.Window[e.Slot%slots].Failed++
	if len(e.Streak) == 0 {
		e.StreakSince = now
	}
	e.Streak = append(slices.Clone(e.Streak), e.Total)
	e.Streak = e.Streak[max(0, len(e.Streak)-inARow):]
}

// answer counts an answer, and ends the failures in a row.
func (e *Evidence) answer() {
	e.Window[e.Slot%slots].Answered++
	e.Streak, e.StreakSince = nil, time.Time{}
}

// counts returns the admissions and failures of the window. Answers and failures whose own admissions are not in the
// window count as admitted.
func (e *Evidence) counts() (admitted, failed int) {
	var all Counts
	for _, c := range e.Window {
		all.Admitted += c.Admitted
		all.Failed += c.Failed
		all.Answered += c.Answered
	}
	return max(all.Admitted, all.Failed+all.Answered), all.Failed
}

// opens reports whether the destination counts as down, by the share of failures in the window or five failures in a
// row. Most successes are not reported while a destination is up, so failures are in a row if at most five claims went
// between them. If none went, the claims pass no gate, and the failures must lie within the window.
func (e *Evidence) opens(t Threshold, now time.Time) bool {
	admitted, failed := e.counts()
	if admitted >= t.Of && float64(failed) >= t.Failures*float64(admitted) {
		return true
	}
	if len(e.Streak) < inARow {
		return false
	}
	between := e.Total - e.Streak[0]
	return 0 < between && between <= inARow || between == 0 && now.Sub(e.StreakSince) <= t.Within
}

// down are the reasons that the destination is down. SERVER_ERROR is not among them: it may be due to the one claim.
var down = []classify.Reason{"TIMEOUT", "CONNECTION_ERROR", "SERVICE_UNAVAILABLE", "NETWORK_ERROR", "503", "504"}

// TellsOf returns what a failure says about the destination. retryAfter is how long it asked to wait. A destination
// that refuses a claim works.
func TellsOf(m *classify.Match, retryAfter time.Duration) Tells {
	switch {
	case slices.Contains(down, m.Reason):
		return TellsFailed
	case m.Reason == "RATE_LIMIT" || retryAfter > 0:
		return TellsRateLimited
	case m.Class == classify.Permanent && m.Reason != "INVALID_CERTIFICATE": // without which there is no connection
		return TellsAnswered
	}
	return ""
}
