package testkit

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// DeadLetter implements deadletter.Reader.
func (m *Memory) DeadLetter(ctx context.Context, id string) (deadletter.Item, bool, error) {
	if err := m.enter(ctx); err != nil {
		return deadletter.Item{}, false, err
	}
	defer m.mu.Unlock()
	for _, d := range m.letters {
		if d.ID == id {
			return m.item(d), true, nil
		}
	}
	return deadletter.Item{}, false, nil
}

// DeadLettersOf implements deadletter.Reader.
func (m *Memory) DeadLettersOf(ctx context.Context, records []int64) ([]deadletter.Item, error) {
	return ask(ctx, m, func() (all []deadletter.Item) {
		for _, record := range slices.Sorted(maps.Keys(m.letters)) {
			if slices.Contains(records, record) {
				all = append(all, m.item(m.letters[record]))
			}
		}
		return all
	})
}

// item returns a dead letter with its attempt.
func (m *Memory) item(d *journal.DeadLetter) deadletter.Item {
	i := deadletter.Item{DeadLetter: *d}
	if at := m.behind(d.Record - 1); at < len(m.records) && m.records[at].Record == d.Record {
		if e := m.records[at]; e.Decode() == nil && e.Attempt != nil {
			i.Error, i.Classification, i.MatchedRule = e.Attempt.Error, e.Attempt.Decision.ErrorClassification, e.Attempt.Decision.MatchedRule
		}
	}
	return i
}

// DeadLetterPage implements deadletter.Reader: it looks at every dead letter there is.
func (m *Memory) DeadLetterPage(ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int) ([]deadletter.Item, string, error) {
	p, err := deadletter.NewQuery(f, cursor, limit)
	if err = cmp.Or(err, askable(f.Assignee)); err == nil {
		err = m.enter(ctx)
	}
	if err != nil {
		return nil, "", err
	}
	defer m.mu.Unlock()
	all := m.passing(p)
	sortItems(all, p)
	if len(all) <= p.Limit {
		return all, "", nil
	}
	return all[:p.Limit], p.Cursor(all[p.Limit-1].DeadLetter.Place()), nil
}

// passing returns the dead letters that a query matches.
func (m *Memory) passing(p *deadletter.Query) (all []deadletter.Item) {
	for _, d := range m.letters {
		if m.found(p, d) {
			all = append(all, m.item(d))
		}
	}
	return all
}

// found reports whether the query matches a dead letter. It reads the filter itself, not what the query makes of it,
// except for the search text.
func (m *Memory) found(p *deadletter.Query, d *journal.DeadLetter) bool {
	f, at := &p.Filter, d.Place()
	fits := (f.State == "all" || string(d.State) == cmp.Or(f.State, "open")) &&
		!d.CreatedAt.Before(f.Since) && (f.Until.IsZero() || d.CreatedAt.Before(f.Until)) &&
		(f.Policy == "" || f.Policy == d.Subject.Policy) && (f.Team == "" || f.Team == d.Team) &&
		(f.Reason == "" || f.Reason == d.Reason) && (f.Fingerprint == "" || f.Fingerprint == d.Fingerprint) &&
		(f.Context == "" || has(d.Context, f.Context)) && (f.IDs == "" || slices.Contains(strings.Split(f.IDs, ","), d.ID)) &&
		(f.Assignee == "" || f.Assignee == cmp.Or(d.Assigned.Assignee, "nobody")) &&
		(f.FollowUp.IsZero() || !d.Assigned.FollowUpAt.IsZero() && d.Assigned.FollowUpAt.Before(f.FollowUp)) &&
		(f.DueUntil.IsZero() || at.Deadline >= journal.CeilMilli(f.DueSince) && at.Deadline < journal.CeilMilli(f.DueUntil)) &&
		d.Record > f.After && (p.After == nil || p.Compare(&at, p.After) > 0)
	return fits && (strings.EqualFold(d.ID, p.Search) || m.tells(d.Fingerprint, p.Words) || strings.HasPrefix(d.Subject.ID, p.Search) ||
		strings.HasPrefix(d.Subject.ID, strings.ToUpper(p.Search)))
}

// tells reports whether a cause has all words, of which there must be some. They are in lower case; codes are not.
func (m *Memory) tells(cause string, words []string) bool {
	f := m.fingerprints[cause]
	for _, word := range words {
		reason := string(f.Reason)
		if !strings.Contains(f.Pattern, word) && !strings.Contains(reason, word) &&
			!strings.Contains(reason, strings.ToUpper(word)) {
			return false
		}
	}
	return len(words) > 0
}

// DeadLetterCounts implements deadletter.Reader: it looks at every dead letter there is.
func (m *Memory) DeadLetterCounts(ctx context.Context, f journal.DeadLetterFilter) ([]deadletter.Count, error) {
	p, err := deadletter.NewQuery(f, "", 1)
	if err != nil {
		return nil, err
	}
	return ask(ctx, m, func() []deadletter.Count {
		counts := map[deadletter.Count]deadletter.Count{}
		for _, i := range m.passing(p) {
			key := deadletter.Count{Fingerprint: i.Fingerprint, Policy: i.Subject.Policy, State: i.State, Team: i.Team, Reason: i.Reason,
				Assignee: i.Assigned.Assignee}
			c := cmp.Or(counts[key], key)
			c.Cents += i.Cents
			c.Last = max(c.Last, i.Record)
			if c.N++; c.N == 1 || i.CreatedAt.Before(c.Oldest) {
				c.Oldest = i.CreatedAt
			}
			if i.CreatedAt.After(c.Newest) {
				c.Newest = i.CreatedAt
			}
			counts[key] = c
		}
		return slices.SortedFunc(maps.Values(counts), func(a, b deadletter.Count) int {
			return cmp.Or(cmp.Compare(a.Fingerprint, b.Fingerprint), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.State, b.State),
				cmp.Compare(a.Team, b.Team), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Assignee, b.Assignee))
		})
	})
}

func sortItems(all []deadletter.Item, p *deadletter.Query) {
	slices.SortFunc(all, func(a, b deadletter.Item) int {
		x, y := a.Place(), b.Place()
		return p.Compare(&x, &y)
	})
}

// has reports whether a context has wanted, which is variable=value.
func has(c decision.Context, wanted string) bool {
	return slices.ContainsFunc(c, func(v decision.ContextValue) bool { return v.Variable+"="+v.Value == wanted })
}
