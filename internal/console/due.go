package console

import (
	"time"

	"retry-worker/internal/journal"
)

// due is how many open dead letters are to be sent before the day ends, and what they are worth.
type due []journal.CauseCount

// dueToday counts those with that in their context (a filter's Context); all where it is empty.
func (v *visit) dueToday(o *open, of string) (due, error) {
	today := v.now.In(v.zone)
	return o.DeadLettersDue(v.r.Context(), of, v.now,
		time.Date(today.Year(), today.Month(), today.Day()+1, 0, 0, 0, 0, v.zone))
}

// sum is how many a filter lets through, its search and its period aside, and what they are worth.
func (d due) sum(f *journal.DeadLetterFilter) (n, cents int64) {
	for i := range d {
		c := &d[i]
		if (f.Policy == "" || f.Policy == c.Policy) && (f.Team == "" || f.Team == c.Team) &&
			(f.Reason == "" || f.Reason == c.Reason) && (f.Fingerprint == "" || f.Fingerprint == c.Fingerprint) {
			n, cents = n+c.N, cents+c.Cents
		}
	}
	return n, cents
}

// of says what is due of what a filter lets through; empty where nothing is.
func (d due) of(v *visit, f journal.DeadLetterFilter) link {
	n, cents := d.sum(&f)
	if n == 0 {
		return link{}
	}
	f.State, f.Sort = states[0], "deadline"
	line := link{v.Count("due.today", n), listURL(f, "")}
	if worth := v.Money(cents); worth != "" {
		line.Text += ": " + worth
	}
	return line
}
