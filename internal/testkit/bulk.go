package testkit

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"retry-worker/internal/journal"
)

// run is everything that is kept of a bulk run.
type run struct {
	journal.BulkRun
	items []journal.BulkItem
	// lost are those that were purged, by their outcomes.
	lost map[journal.BulkOutcome]int64
	// begun is the last record of the commit it was begun in, gathered the one up to which dead letters are in it.
	begun, gathered, numbered int64
}

// told is the run as a store tells it.
func (r *run) told() journal.BulkRun {
	all := r.BulkRun
	all.Counts = maps.Clone(r.lost)
	for _, i := range r.items {
		all.Counts[i.Outcome]++
	}
	maps.DeleteFunc(all.Counts, func(_ journal.BulkOutcome, n int64) bool { return n == 0 })
	all.Total = 0
	for _, n := range all.Counts {
		all.Total += n
	}
	return all
}

// keepRuns saves bulk runs that are new or changed.
func (m *Memory) keepRuns(c *journal.Changes) {
	for _, n := range c.Runs {
		for _, t := range []*time.Time{&n.Filter.Since, &n.Filter.Until, &n.HeldAt, &n.ChangedAt, &n.CreatedAt, &n.StartedAt, &n.EndedAt} {
			*t = stored(*t)
		}
		n.Total, n.Counts, n.Filter.State = 0, nil, ""
		old := m.runs[n.ID]
		if old == nil {
			m.runs[n.ID] = &run{BulkRun: n, lost: map[journal.BulkOutcome]int64{}, begun: m.head.Record + int64(len(c.Link.Digests))}
			continue
		}
		old.State, old.Hold, old.HeldAt, old.ChangedBy, old.ChangedAt = n.State, n.Hold, n.HeldAt, n.ChangedBy, n.ChangedAt
		old.StartedAt, old.EndedAt = n.StartedAt, n.EndedAt
	}
}

// verified is a dead letter as it is kept, once the bulk run that decided on it has noted what became of it.
func (m *Memory) verified(s *subject, d journal.DeadLetter, now time.Time) journal.DeadLetter {
	old := s.deadLetter(d.ID)
	if old == nil || d.Run == "" {
		return d
	}
	if d.Run == old.Run && journal.Milli(d.Review.At) != journal.Milli(old.Review.At) { // decided anew by who knows of no runs
		d.Run = ""
		return d
	}
	r := m.runs[d.Run]
	if r == nil || d.Run == old.Run && d.State == old.State && d.Delivery == old.Delivery {
		return d
	}
	for i := range r.items {
		n := &r.items[i]
		going := n.Outcome == journal.BulkPlanned || n.Outcome == journal.BulkDecided || n.Outcome == journal.BulkTaken
		if to := outcome(s, &d); n.DeadLetter == d.ID && going && n.Outcome != to {
			n.Outcome, n.DecidedAt, n.ChangedAt = to, stored(d.Review.At), stored(m.writtenAt(now))
		}
	}
	return d
}

// writtenAt is the instant of the ledger's head once the commit of that instant is in it.
func (m *Memory) writtenAt(now time.Time) time.Time {
	if now.IsZero() {
		return m.head.At
	}
	return now
}

// outcome of a dead letter that a bulk run decided on.
func outcome(s *subject, d *journal.DeadLetter) journal.BulkOutcome {
	switch {
	case d.State == journal.DeadLetterRecovered:
		return journal.BulkRecovered
	case d.State == journal.DeadLetterSuperseded:
		if n := len(s.episodes); n > 0 {
			if next := slices.MaxFunc(s.episodes, func(a, b journal.Episode) int { return cmp.Compare(a.Number, b.Number) }).DeadLetter; next != "" && next != d.ID {
				return journal.BulkDeadAgain
			}
		}
		return journal.BulkSuperseded
	case d.State == journal.DeadLetterOpen, d.Delivery == journal.DeliveryNobody:
		return journal.BulkNobody
	case d.State == journal.DeadLetterDiscarded && d.Delivery != journal.DeliveryPending:
		return journal.BulkDiscarded
	case d.Delivery == journal.DeliveryTaken:
		return journal.BulkTaken
	default:
		return journal.BulkDecided
	}
}

// forgetRuns takes from bulk runs what is purged: items of dead letters that are gone, and runs that have ended and have none.
func (m *Memory) forgetRuns() {
	for id, r := range m.runs {
		r.items = slices.DeleteFunc(r.items, func(i journal.BulkItem) bool {
			if m.letter(i.DeadLetter) != nil {
				return false
			}
			if i.Outcome == journal.BulkPlanned {
				i.Outcome = journal.BulkRefused
			}
			r.lost[i.Outcome]++
			return true
		})
		if len(r.items) == 0 && r.State.Ended() && r.begun <= m.purged {
			delete(m.runs, id)
		}
	}
}

// letter is the dead letter with that id; nil where there is none.
func (m *Memory) letter(id string) *journal.DeadLetter {
	for _, s := range m.subjects {
		if d := s.known(id); d != nil {
			return d
		}
	}
	return nil
}

// chosen are the open dead letters with a record of at most through that the filter lets through, the oldest first.
func (m *Memory) chosen(f journal.DeadLetterFilter, through int64) (all []journal.DeadLetterItem, err error) {
	f.State = ""
	p, err := f.Plan("", 1)
	if err != nil {
		return nil, err
	}
	for _, s := range m.subjects {
		if s == nil {
			continue
		}
		for i := range s.deadLetters {
			if d := &s.deadLetters[i]; d.Record <= through && p.Passes(d, s.name.Policy, s.causes[d.ID]) && m.found(p, s, d) {
				all = append(all, m.item(s, d))
			}
		}
	}
	slices.SortFunc(all, func(a, b journal.DeadLetterItem) int { return cmp.Compare(a.Record, b.Record) })
	return all, nil
}

// busy tells whether a run that has not ended has planned the dead letter.
func (m *Memory) busy(id string) bool {
	for _, r := range m.runs {
		if !r.State.Ended() && slices.ContainsFunc(r.items, func(i journal.BulkItem) bool {
			return i.DeadLetter == id && i.Outcome == journal.BulkPlanned
		}) {
			return true
		}
	}
	return false
}

// DeadLetterTallies implements journal.BulkStore.
func (m *Memory) DeadLetterTallies(ctx context.Context, f journal.DeadLetterFilter, through int64, recent time.Time) ([]journal.DeadLetterTally, int64, error) {
	if err := m.readable(ctx); err != nil {
		return nil, 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if through == 0 {
		through = m.head.Record
	}
	all, err := m.chosen(f, through)
	if err != nil {
		return nil, 0, err
	}
	sums := journal.DeadLetterSums{}
	for i := range all {
		d := &all[i]
		t := d.Tally(d.Subject.Policy, recent)
		t.Busy = m.busy(d.ID)
		sums.Add(t, 1, d.CreatedAt, d.CreatedAt, d.Record)
	}
	return sums.Tallies(), through, nil
}

// BulkRun implements journal.BulkStore.
func (m *Memory) BulkRun(ctx context.Context, id string) (journal.BulkRun, bool, error) {
	if err := m.readable(ctx); err != nil {
		return journal.BulkRun{}, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.runs[id]; r != nil {
		return r.told(), true, nil
	}
	return journal.BulkRun{}, false, nil
}

// ofRuns are the runs that are wanted, in the order of their ids.
func (m *Memory) ofRuns(wanted func(r *run) bool) (all []journal.BulkRun) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(m.runs)) {
		if r := m.runs[id]; wanted(r) {
			all = append(all, r.told())
		}
	}
	return all
}

// BulkRuns implements journal.BulkStore.
func (m *Memory) BulkRuns(ctx context.Context, cursor string, limit int) ([]journal.BulkRun, string, error) {
	after, err := journal.AfterBulkRun(cursor)
	if err == nil {
		err = m.readable(ctx)
	}
	if err != nil {
		return nil, "", err
	}
	all := m.ofRuns(func(r *run) bool { return after == "" || r.ID < after })
	slices.Reverse(all)
	if limit = min(max(limit, 1), journal.MaxDeadLetterPage); len(all) <= limit {
		return all, "", nil
	}
	return all[:limit], journal.BulkCursor(all[limit-1].ID), nil
}

// ActiveBulkRuns implements journal.BulkStore.
func (m *Memory) ActiveBulkRuns(ctx context.Context) ([]journal.BulkRun, error) {
	if err := m.readable(ctx); err != nil {
		return nil, err
	}
	return m.ofRuns(func(r *run) bool { return !r.State.Ended() }), nil
}

// BulkItems implements journal.BulkStore.
func (m *Memory) BulkItems(ctx context.Context, id string, outcome journal.BulkOutcome, after int64, limit int) ([]journal.BulkItem, error) {
	if err := m.readable(ctx); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []journal.BulkItem
	if r := m.runs[id]; r != nil {
		all = slices.DeleteFunc(slices.Clone(r.items), func(i journal.BulkItem) bool {
			return i.Number <= after || outcome != "" && i.Outcome != outcome
		})
	}
	return first(all, limit), nil
}

// GatherBulkItems implements journal.BulkStore.
func (m *Memory) GatherBulkItems(ctx context.Context, id string, limit int, busyCode string, at time.Time) (bool, error) {
	if err := m.readable(ctx); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[id]
	if r == nil || r.State.Ended() || !r.StartedAt.IsZero() {
		return true, nil
	}
	all, err := m.chosen(r.Filter, r.Through)
	if err != nil {
		return false, err
	}
	all = slices.DeleteFunc(all, func(d journal.DeadLetterItem) bool { return d.Record <= r.gathered })
	limit = min(max(limit, 1), 1000)
	for _, d := range first(all, limit) {
		r.numbered++
		i := journal.BulkItem{Number: r.numbered, DeadLetter: d.ID, Subject: d.Subject, Outcome: journal.BulkPlanned, ChangedAt: stored(at)}
		if m.busy(d.ID) {
			i.Outcome, i.Code = journal.BulkRefused, busyCode
		}
		r.items, r.gathered = append(r.items, i), d.Record
	}
	if len(all) >= limit {
		return false, nil
	}
	r.StartedAt = stored(at)
	if r.State == journal.BulkPreparing {
		r.State = journal.BulkRunning
	}
	return true, nil
}

// RefuseBulkItem implements journal.BulkStore.
func (m *Memory) RefuseBulkItem(ctx context.Context, id string, number int64, code string, at time.Time) error {
	if err := m.readable(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.runs[id]; r != nil {
		for i := range r.items {
			if n := &r.items[i]; n.Number == number && n.Outcome == journal.BulkPlanned {
				n.Outcome, n.Code, n.ChangedAt = journal.BulkRefused, code, stored(at)
			}
		}
	}
	return nil
}

// HoldBulkRun implements journal.BulkStore.
func (m *Memory) HoldBulkRun(ctx context.Context, id, why string, at time.Time) error {
	if err := m.readable(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.runs[id]; r != nil && r.State == journal.BulkRunning && r.Hold != why {
		if r.Hold, r.HeldAt = why, stored(at); why == "" {
			r.HeldAt = time.Time{}
		}
	}
	return nil
}
