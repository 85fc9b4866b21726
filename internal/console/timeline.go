package console

import (
	"slices"
	"time"

	"retry-worker/internal/journal"
)

// The shapes of what happened. The set is closed.
const (
	markRetry     = "retry"     // a failure after which a retry was scheduled
	markFinal     = "final"     // a failure that is given up
	markRecovered = "recovered" // it went through
	markReview    = "review"    // a person sent it again
	markDiscard   = "discard"   // a person let it go
	markNext      = "next"      // the retry that lies ahead
	markHeld      = "held"      // it waits at a gate
	markReleased  = "released"  // it waits there no more
	markDeadline  = "deadline"  // by when it must have been sent
	markNote      = "note"      // anything else
)

// marks that a story's steps have.
var marks = []string{markHeld, markReleased, markRetry, markFinal, markReview, markDiscard, markRecovered, markNext,
	markDeadline}

// step is one thing of a story in short.
type step struct {
	Mark string
	// Number of the attempt; empty for anything else.
	Number string
	At     Moment
	// Wait that began there, where it is a minute at least; Held tells that it was a gate's, Ahead that it is not over.
	Wait        string
	Held, Ahead bool
}

// happened is one thing before it is said.
type happened struct {
	at   time.Time
	mark string
	// number of the attempt, 0 for anything else.
	number int64
	// until the wait that begins there ends; the zero time for none.
	until time.Time
}

// deadline of a claim that is still to be sent; the zero time for none.
func deadline(story *journal.Story) time.Time {
	if len(story.Held) > 0 {
		return story.Held[0].Deadline
	}
	if n := len(story.DeadLetters); n > 0 && story.DeadLetters[n-1].State == journal.DeadLetterOpen {
		return story.DeadLetters[n-1].Deadline
	}
	return time.Time{}
}

// happenings of a story in order, with the retry that lies ahead and the deadline.
func (v *visit) happenings(story *journal.Story) []happened {
	var all []happened
	for i := range story.Attempts {
		a := &story.Attempts[i]
		h := happened{a.Decision.AnalysedAt, markFinal, a.Number, time.Time{}}
		if a.Decision.ShouldRetry() {
			h.mark, h.until = markRetry, a.Decision.NextRetryTime
		}
		all = append(all, h)
	}
	for i := range story.Entries {
		if e := &story.Entries[i]; e.Kind != journal.DeliveryEntry { // seconds after what was decided
			all = append(all, v.happenedBy(story, e))
		}
	}
	slices.SortStableFunc(all, func(a, b happened) int { return a.at.Compare(b.at) })
	// A wait ends early where the next attempt came earlier: the engine was asked again.
	for i := range all {
		if i+1 < len(all) && all[i+1].number > 0 && all[i].until.After(all[i+1].at) {
			all[i].until = all[i+1].at
		}
	}
	if n := len(story.Episodes); n > 0 {
		e := &story.Episodes[n-1]
		if state := e.StateAt(v.now); (state == journal.Scheduled || state == journal.Reprocessing) &&
			e.NextRetryTime.After(v.now) {
			all = append(all, happened{at: e.NextRetryTime, mark: markNext})
		}
	}
	if at := deadline(story); !at.IsZero() && len(all) > 0 {
		all = append(all, happened{at: at, mark: markDeadline})
		slices.SortStableFunc(all, func(a, b happened) int { return a.at.Compare(b.at) })
	}
	return all
}

func (v *visit) happenedBy(story *journal.Story, e *journal.Entry) happened {
	h := happened{at: e.At, mark: v.entry(e, bodyOf(e)).Mark}
	if h.mark == markHeld {
		h.until = v.heldUntil(story, e)
	}
	if h.mark != markReview {
		return h
	}
	for i := range story.DeadLetters {
		if n := &story.DeadLetters[i].Review; n.At.Equal(e.At) && n.NextRetryTime.After(e.At) {
			h.until = n.NextRetryTime
		}
	}
	return h
}

// heldUntil returns when the process of a gate's record waited no more; now where it does yet.
func (v *visit) heldUntil(story *journal.Story, held *journal.Entry) time.Time {
	b, _ := journal.BodyOf[journal.GateBody](held)
	for i := range story.Entries {
		e := &story.Entries[i]
		if e.Kind != journal.GateEntry || e.Record <= held.Record {
			continue
		}
		if later, _ := journal.BodyOf[journal.GateBody](e); later.JobKey == b.JobKey {
			return e.At
		}
	}
	return v.now
}

// steps of a story; none where it is told by one.
func (v *visit) steps(story *journal.Story) (steps []step) {
	for _, h := range v.happenings(story) {
		s := step{Mark: h.mark, At: v.moment(h.at, "at", v.brief(h.at)), Held: h.mark == markHeld,
			Ahead: h.until.After(v.now)}
		if h.number > 0 {
			s.Number = v.Number(h.number)
		}
		if wait := h.until.Sub(h.at); wait >= time.Minute {
			s.Wait = v.span(wait)
		}
		if slices.Contains(marks, h.mark) {
			steps = append(steps, s)
		}
	}
	if len(steps) < 2 {
		return nil
	}
	return steps
}
