package testkit

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"retry-worker/internal/journal"
)

// keepSums adds to the sums and fingerprints.
func (m *Memory) keepSums(c *journal.Changes) {
	for _, s := range c.Sums {
		n := s.N
		s.N = 0
		m.sums[s] += n
	}
	for _, f := range c.Fingerprints {
		f.FirstSeen, f.LastSeen, f.Began = stored(f.FirstSeen), stored(f.LastSeen), stored(f.Began)
		old, known := m.fingerprints[f.ID]
		if known {
			old.Add(&f)
			f = old
		}
		m.fingerprints[f.ID] = f
	}
}

// counted returns a fingerprint with its counts.
func (m *Memory) counted(f journal.Fingerprint) journal.Fingerprint {
	sum := func(name journal.SumName) int64 { return m.sums[journal.Sum{Name: name, Cause: f.ID}] }
	f.Failures, f.Exhausted = sum(journal.SumCauseFailures), sum(journal.SumCauseExhausted)
	f.Permanent, f.Recovered = sum(journal.SumCausePermanent), sum(journal.SumCauseRecovered)
	f.Retried = f.Failures - f.Exhausted - f.Permanent
	return f
}

// Sums implements journal.Reader.
func (m *Memory) Sums(ctx context.Context, from int64) ([]journal.Sum, error) {
	return ask(ctx, m, func() []journal.Sum {
		var all []journal.Sum
		for s, n := range m.sums {
			if s.Slot >= from && s.Cause == "" {
				s.N = n
				all = append(all, s)
			}
		}
		slices.SortFunc(all, func(a, b journal.Sum) int {
			return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Bucket, b.Bucket))
		})
		return all
	})
}

// Cases implements journal.Reader.
func (m *Memory) Cases(ctx context.Context, weeks []int64, limit int) ([]journal.Cases, error) {
	return ask(ctx, m, func() []journal.Cases {
		sums := map[journal.Cases]journal.Prospects{}
		for f, value := range m.sums {
			if !slices.Contains(weeks, f.Slot) || f.Cause == "" {
				continue
			}
			key := journal.Cases{Policy: f.Policy, Cause: f.Cause, Destination: f.Destination, Reason: m.fingerprints[f.Cause].Reason}
			p := sums[key]
			switch f.Name {
			case journal.SumCaseRecovered:
				p.Recovered += value
			case journal.SumCaseLost:
				p.Lost += value
			case journal.SumCaseTime:
				p.Took += time.Duration(value) * time.Millisecond
			}
			sums[key] = p
		}
		var all []journal.Cases
		for c, p := range sums {
			c.Prospects = p
			all = append(all, c)
		}
		slices.SortFunc(all, func(a, b journal.Cases) int {
			return cmp.Or(cmp.Compare(b.Closed(), a.Closed()), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Cause, b.Cause),
				cmp.Compare(a.Destination, b.Destination))
		})
		return first(all, limit)
	})
}

// Causes implements journal.Reader.
func (m *Memory) Causes(
	ctx context.Context, filter journal.CauseFilter, after *journal.Fingerprint, limit int,
) ([]journal.Cause, error) {
	return ask(ctx, m, func() []journal.Cause {
		order := func(a, b journal.Fingerprint) int {
			return cmp.Or(cmp.Compare(b.Failures, a.Failures), cmp.Compare(a.ID, b.ID))
		}
		var all []journal.Cause
		for _, f := range m.fingerprints {
			c := journal.Cause{Fingerprint: m.counted(f)}
			if s := m.subjects[m.keys[journal.CauseSubject(f.Policy, f.ID)]]; s != nil {
				c.Taught = s.Taught
			}
			if (filter.Policy == "" || f.Policy == filter.Policy) && (filter.IDs == nil || slices.Contains(filter.IDs, f.ID)) &&
				!f.Began.Before(filter.Began) && (filter.Told.IsZero() || f.News != nil && !f.News.At.Before(filter.Told)) &&
				(!filter.Taught || c.Taught != nil) && (after == nil || order(c.Fingerprint, *after) > 0) {
				all = append(all, c)
			}
		}
		slices.SortFunc(all, func(a, b journal.Cause) int { return order(a.Fingerprint, b.Fingerprint) })
		return first(all, limit)
	})
}

// keepOutbox adds new messages and removes published ones.
func (m *Memory) keepOutbox(c *journal.Changes) {
	for _, o := range c.Outbox {
		o.At = stored(o.At)
		m.outbox = append(m.outbox, o)
	}
	m.outbox = slices.DeleteFunc(m.outbox, func(o journal.Message) bool { return slices.Contains(c.Published, o.Sequence) })
}

// Pending implements journal.Outbox.
func (m *Memory) Pending(ctx context.Context, queue string, after int64, limit int) ([]journal.Message, error) {
	return ask(ctx, m, func() []journal.Message {
		others := func(o journal.Message) bool { return o.Queue != queue || o.Sequence <= after }
		return first(slices.DeleteFunc(slices.Clone(m.outbox), others), limit)
	})
}

// Backlog implements journal.Outbox.
func (m *Memory) Backlog(ctx context.Context) (map[string]int64, error) {
	return ask(ctx, m, func() map[string]int64 {
		waiting := map[string]int64{}
		for _, o := range m.outbox {
			waiting[o.Queue]++
		}
		return waiting
	})
}

// lease is who holds a name, and until when.
type lease struct {
	holder  string
	expires time.Time
}

// Lease implements journal.Outbox.
func (m *Memory) Lease(ctx context.Context, name, holder string, span time.Duration) (bool, error) {
	return ask(ctx, m, func() bool {
		now := time.Now()
		l, held := m.leases[name]
		if held && l.holder != holder && l.expires.After(now) && (span <= 0 || !l.expires.After(now.Add(2*span))) {
			return false
		}
		m.leases[name] = lease{holder, now.Add(span)}
		return true
	})
}

// AddAdmissions implements journal.Outbox.
func (m *Memory) AddAdmissions(ctx context.Context, all []journal.Admission) error {
	_, err := ask(ctx, m, func() bool {
		for _, a := range all {
			m.admissions[journal.Admission{Destination: a.Destination, Minute: a.Minute}] += a.Count
			maps.DeleteFunc(m.admissions, func(of journal.Admission, _ int) bool { return of.Minute < a.Minute-journal.AdmissionsKept })
		}
		return true
	})
	return err
}

// Admissions implements journal.Reader.
func (m *Memory) Admissions(ctx context.Context, since int64) ([]journal.Admission, error) {
	return ask(ctx, m, func() (all []journal.Admission) {
		for of, n := range m.admissions {
			if of.Count = n; of.Minute >= since {
				all = append(all, of)
			}
		}
		slices.SortFunc(all, func(a, b journal.Admission) int {
			return cmp.Or(cmp.Compare(a.Minute, b.Minute), cmp.Compare(a.Destination, b.Destination))
		})
		return all
	})
}
