package scenarios

import (
	"slices"
	"strings"
)

// load are instances of SUB_06 of four kinds, as many of each: one fails once and waits for its timer, one
// fails for good and is discarded, one is sent again by the review, one has used up its retries and is sent
// again by the review.
type load struct {
	keys      []int64
	scheduled []int64 // of the first kind
}

// startLoad starts so many instances.
func (s *scenario) startLoad(size int) (l load) {
	s.t.Helper()
	discarded, corrected, exhausted := failing("INSURANCE_EXPIRED: beneficiário "+strings.Join(personal, ", ")), failing("INVALID_PATIENT_DATA"), failing("HTTP 503")
	discarded.Review.Discard = true
	exhausted.Retried = 5
	kinds := []struct {
		claim
		extra map[string]any
	}{{failing("TIMEOUT"), nil}, {discarded, nil}, {corrected, nil}, {exhausted, map[string]any{"retryCount": exhausted.Retried}}}
	l.keys = s.createAll("SUB_06", size, func(n int) map[string]any {
		kind := kinds[n%len(kinds)]
		return submissions.variables(s.claimID(n), kind.claim, kind.extra)
	})
	for n := 0; n < size; n += len(kinds) {
		l.scheduled = append(l.scheduled, l.keys[n])
	}
	return l
}

// loadCounts are the engine's counters when a load of that size has ended.
func loadCounts(size int) counts {
	each := size / 4
	return counts{
		"submit-claim error thrown": size, "submit-claim completed": 3 * each,
		"analyze-retry completed": each, "analyze-retry error thrown": 3 * each,
		"retry-review completed": 3 * each, "record-retry-outcome completed": 3 * each,
		"timers triggered": 3 * each, "processes completed": size,
	}
}

// finish waits until nothing is left but the timers of the first kind, lets them fire, and waits for the end of all.
func (s *scenario) finish(l load) {
	s.t.Helper()
	s.awaitAll(l.keys, "the load to end or to wait for its timers", func(i *instance) bool {
		return i.over() || slices.Contains(l.scheduled, i.key) && len(i.timers) > 0
	})
	s.fire(l.scheduled...)
	s.awaitEnded(l.keys...)
}

// look holds each job of the instances against the rule that it is answered once. It returns how many there are, and
// how many of them waited for a time-out.
func (s *scenario) look(keys []int64) (jobs, timedOut int) {
	s.t.Helper()
	s.history.Lock()
	defer s.history.Unlock()
	for _, key := range keys {
		for _, j := range s.history.instances[key].jobs {
			jobs++
			if len(j.answers) != 1 {
				s.t.Errorf("the job %d (%s) was answered %d times", j.key, j.kind, len(j.answers))
			} else if len(j.timeouts) > 0 {
				timedOut++
			}
		}
	}
	return jobs, timedOut
}
