package learning

import (
	"context"
	"fmt"
	"slices"
	"time"

	"retry-worker/internal/journal"
)

const (
	// newFor is how long a cause is new, or back, at most: one that a single claim shows in the evening may break out in
	// the morning.
	newFor = 24 * time.Hour
	// enough failures within an hour, and a cause that is new is told (R34).
	enough = 5
	// recordsPage is how many records are read at once.
	recordsPage = 1000
)

// Store is what FindNew reads and writes.
type Store interface {
	Source
	Causes(ctx context.Context, f journal.CauseFilter, after *journal.Fingerprint, limit int) ([]journal.Cause, error)
	Records(ctx context.Context, f journal.RecordFilter, after int64, limit int) ([]journal.Record, error)
	TellCause(ctx context.Context, c *journal.Cause) (bool, error)
}

// FindNew returns the causes to be told of as new, or back: those that never failed, or not for journal.Silence, and now
// fail five times within an hour (R34). What it returns nobody returns again, whichever replicas look at once.
func FindNew(ctx context.Context, s Store, now time.Time) (found []journal.Cause, err error) {
	began := now.Add(-newFor)
	causes, err := s.Causes(ctx, journal.CauseFilter{Began: began}, nil, most)
	if err != nil {
		return nil, err
	}
	causes = slices.DeleteFunc(causes, func(c journal.Cause) bool {
		return c.Failures < enough || c.News != nil && !c.News.At.Before(c.Began)
	})
	if len(causes) == 0 {
		return nil, nil
	}
	failures, err := failuresOf(ctx, s, causes)
	if err != nil {
		return nil, err
	}
	for i := range causes {
		c := &causes[i]
		if !breaksOut(failures[c.ID]) {
			continue
		}
		if c.News, err = news(ctx, s, c, failures[c.ID]); err != nil {
			return found, err
		}
		c.News.At = slices.MaxFunc([]time.Time{now, c.Began}, time.Time.Compare)
		told, err := s.TellCause(ctx, c)
		if err != nil {
			return found, err
		}
		if told {
			found = append(found, *c)
		}
	}
	return found, nil
}

// failuresOf returns the failures of causes since they began, by Fingerprint.ID, in the order of their instants.
func failuresOf(ctx context.Context, s Store, causes []journal.Cause) (map[string][]journal.Record, error) {
	first := slices.MinFunc(causes, func(a, b journal.Cause) int { return a.Began.Compare(b.Began) }).Began
	all := make(map[string][]journal.Record, len(causes))
	for i := range causes {
		all[causes[i].ID] = nil
	}
	for after, more := int64(0), true; more; {
		page, err := s.Records(ctx, journal.RecordFilter{Since: first}, after, recordsPage)
		if err != nil {
			return nil, fmt.Errorf("read the failures of causes that may be new: %w", err)
		}
		for _, r := range page {
			after = r.Number()
			if a := r.Attempt; a != nil && a.Revision == 0 {
				if known, suspect := all[a.Fingerprint]; suspect {
					all[a.Fingerprint] = append(known, r)
				}
			}
		}
		more = len(page) == recordsPage
	}
	for _, of := range all {
		slices.SortStableFunc(of, func(a, b journal.Record) int { return at(a).Compare(at(b)) })
	}
	return all, nil
}

func at(r journal.Record) time.Time { return r.Attempt.Decision.AnalysedAt }

// breaksOut reports whether enough failures lie within an hour.
func breaksOut(failures []journal.Record) bool {
	for i := enough - 1; i < len(failures); i++ {
		if at(failures[i]).Sub(at(failures[i-enough+1])) <= time.Hour {
			return true
		}
	}
	return false
}

// news returns what is told of a cause with these failures since it began.
func news(ctx context.Context, s Store, c *journal.Cause, failures []journal.Record) (*journal.News, error) {
	n := &journal.News{First: c.Began, Last: at(failures[len(failures)-1]), Failures: int64(len(failures))}
	claims, destinations := map[journal.Subject]bool{}, map[string]int{}
	for _, r := range failures {
		claims[r.Subject] = true
		d := r.Attempt.Destination
		if destinations[d]++; destinations[d] > destinations[n.Destination] {
			n.Destination = d
		}
	}
	if n.Claims = int64(len(claims)); c.Prior.IsZero() {
		return n, nil
	}
	n.Before = &journal.Before{Last: c.Prior, Failures: max(c.Failures-n.Failures, 0)}
	cases, err := s.Cases(ctx, weeksThrough(c.Prior.Add(journal.Silence/2)), most)
	for i := range cases {
		if cases[i].Cause == c.ID {
			n.Before.Recovered, n.Before.Closed = n.Before.Recovered+cases[i].Recovered, n.Before.Closed+cases[i].Closed()
		}
	}
	return n, err
}
