package destination

import (
	"slices"
	"time"

	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
)

// slots that a window is kept in: counts are forgotten a slot at a time.
const slots = 12

// Evidence counts admissions and failures while a destination is up.
type Evidence struct {
	// Admitted, Failed and Answered hold the window: a count for each twelfth of it, that of instant i at i modulo 12.
	Admitted [slots]int `json:"admitted"`
	Failed   [slots]int `json:"failed"`
	Answered [slots]int `json:"answered,omitzero"`
	// Slot is the newest.
	Slot int64 `json:"slot"`
	// Total counts all admissions; Streak holds what it was at each of the last failures without a success between
	// them, the oldest first, and StreakSince when they began.
	Total       int64     `json:"total"`
	Streak      []int64   `json:"streak,omitempty"`
	StreakSince time.Time `json:"streakSince,omitzero"`
}

// turn forgets what lies before the window.
func (e *Evidence) turn(within time.Duration, now time.Time) {
	slot := now.UnixNano() / max(1, int64(within)/slots)
	for i := max(e.Slot, slot-slots) + 1; i <= slot; i++ {
		e.Admitted[i%slots], e.Failed[i%slots], e.Answered[i%slots] = 0, 0, 0
	}
	if slot < e.Slot-slots || slot > e.Slot { // the clock, or the length of the window, may have gone back
		e.Slot = slot
	}
}

func (e *Evidence) admit(n int) {
	e.Admitted[e.Slot%slots] += n
	e.Total += int64(n)
}

// fail counts a failure. It copies Streak, which other copies of the State share.
func (e *Evidence) fail(now time.Time) {
	e.Failed[e.Slot%slots]++
	if len(e.Streak) == 0 {
		e.StreakSince = now
	}
	e.Streak = append(append([]int64(nil), e.Streak...), e.Total)
	if len(e.Streak) > inARow {
		e.Streak = e.Streak[1:]
	}
}

// answer counts an answer, and ends the failures in a row.
func (e *Evidence) answer() {
	e.Answered[e.Slot%slots]++
	e.Streak, e.StreakSince = nil, time.Time{}
}

// counts returns the admissions and failures of the window. It counts an answer or a failure whose
// own admission was not counted, or is older than the window, as admitted.
func (e *Evidence) counts() (admitted, failed int) {
	answered := 0
	for i := range slots {
		admitted += e.Admitted[i]
		failed += e.Failed[i]
		answered += e.Answered[i]
	}
	return max(admitted, failed+answered), failed
}

// opens reports whether the destination counts as down: the share of failures in the window, or five failures in a row.
// Most successes are told to nobody while a destination is up. So failures are in a row where hardly any claim went
// between them; where none did, the claims pass no gate, and only the window can bound the failures.
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

// down are the reasons that speak of the destination. SERVER_ERROR is none: it may be this claim that it cannot take.
var down = []decision.Reason{"TIMEOUT", "CONNECTION_ERROR", "SERVICE_UNAVAILABLE", "NETWORK_ERROR", "503", "504"}

// FailureEvent returns what the failure of a claim that went at sent tells of its destination; nil is nothing. That the
// destination refused a claim shows that it works.
func FailureEvent(m *classify.Match, claim string, sent time.Time, retryAfter time.Duration) Event {
	switch {
	case m.Reason == "RATE_LIMIT" || retryAfter > 0:
		return RateLimited{claim, sent, retryAfter}
	case slices.Contains(down, m.Reason):
		return Failed{claim, sent}
	case m.Class == decision.Permanent && m.Reason != "INVALID_CERTIFICATE": // which lets no connection come about
		return Answered{claim, sent}
	}
	return nil
}
