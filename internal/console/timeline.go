package console

import (
	"slices"
	"time"

	"retry-worker/internal/journal"
)

// The marks of a timeline. The set is closed.
const (
	markRetry     = "retry"     // a failure after which a retry was scheduled
	markFinal     = "final"     // a failure that is given up
	markRecovered = "recovered" // it went through
	markReview    = "review"    // a person sent it again
	markDiscard   = "discard"   // a person let it go
	markAccepted  = "accepted"  // the other side had it already
	markNext      = "next"      // the retry that lies ahead
	markHeld      = "held"      // it waits at a gate
	markReleased  = "released"  // it left the gate
	markDeadline  = "deadline"  // by when it must have been sent
	markNote      = "note"      // anything else
)

// step is one event in a story's timeline.
type step struct {
	Mark string
	// Number is an attempt's; empty for anything else.
	Number string
	At     Moment
	// Wait is how long the wait that begins here lasts, if it is at least a minute. Held reports whether it is at a
	// gate, Ahead whether it is not over.
	Wait        string
	Held, Ahead bool

	at time.Time
}

// deadline returns the deadline of a claim that is still to be sent; the zero time if there is none.
func deadline(story *journal.Story) time.Time {
	if len(story.Held) > 0 {
		return story.Held[0].Deadline
	}
	if n := len(story.DeadLetters); n > 0 && story.DeadLetters[n-1].State == journal.DeadLetterOpen {
		return story.DeadLetters[n-1].Deadline
	}
	return time.Time{}
}

// steps returns a story's timeline: the events of its chapters, the retry that lies ahead, and the deadline. A story of
// one event has none, unless it waits at a gate.
func (v *visit) steps(story *journal.Story, chapters []chapter) (steps []step) {
	add := func(mark, number string, at time.Time) {
		if mark != markNote && !at.IsZero() {
			steps = append(steps, step{Mark: mark, Number: number, At: v.moment(at, "at", v.brief(at)), at: at})
		}
	}
	for _, c := range chapters {
		for i := range c.Events {
			add(c.Events[i].Mark, c.Events[i].Number, c.Events[i].at)
		}
	}
	if n := len(story.Episodes); n > 0 {
		e := &story.Episodes[n-1]
		if state := e.StateAt(v.now); state == journal.Scheduled || state == journal.Reprocessing {
			add(markNext, "", e.NextRetryTime)
		}
	}
	if len(steps) == 0 || len(steps) == 1 && steps[0].Mark != markHeld {
		return nil
	}
	add(markDeadline, "", deadline(story))
	slices.SortStableFunc(steps, func(a, b step) int { return a.at.Compare(b.at) })
	for i := range steps[:len(steps)-1] {
		v.setWait(&steps[i], &steps[i+1])
	}
	return steps
}

// setWait sets how long the wait of s lasts, which next ends. A wait at a gate is counted until now at most.
func (v *visit) setWait(s, next *step) {
	until := next.at
	switch s.Held = s.Mark == markHeld; {
	case s.Held && until.After(v.now):
		until = v.now
	case s.Mark != markHeld && s.Mark != markRetry && s.Mark != markReview, next.Mark == markDeadline:
		return
	default:
		s.Ahead = next.Mark == markNext
	}
	if wait := until.Sub(s.at); wait >= time.Minute {
		s.Wait = v.span(wait)
	}
}
