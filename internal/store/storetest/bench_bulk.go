package storetest

import (
	"testing"
	"time"

	"retry-worker/internal/journal"
)

// benchGroups reads pages of causes.
func (g *graveyard) benchGroups(b *testing.B, s Store) {
	for name, f := range map[string]journal.DeadLetterFilter{"open": {}, "all": {State: "all"}, "of a policy": {Policy: "policy-3"}, "of a team": {Team: "team-1"},
		"of a word": {Query: "gateway"}} {
		b.Run("groups, "+name, func(b *testing.B) {
			cursor, pages := "", 0
			measure(b, func() error {
				_, next, err := s.DeadLetterGroups(b.Context(), f, cursor, 50)
				if cursor, pages = next, pages+1; pages%10 == 0 {
					cursor = ""
				}
				return err
			})
		})
	}
}

// benchTallies sums up what plans are made of.
func (g *graveyard) benchTallies(b *testing.B, s Store) {
	for _, plan := range []struct {
		name string
		f    journal.DeadLetterFilter
	}{{"all open", journal.DeadLetterFilter{}}, {"a team's", journal.DeadLetterFilter{Team: "team-1"}}, {"one cause", journal.DeadLetterFilter{Fingerprint: g.causes[len(g.causes)-1]}},
		{"a word", journal.DeadLetterFilter{Query: "credential"}}, {"a beginning of all subjects", journal.DeadLetterFilter{Query: "CLM-"}},
		{"a day's", journal.DeadLetterFilter{Since: when(g.total - 864_000), Until: when(g.total)}}} {
		b.Run("tallies, "+plan.name, func(b *testing.B) {
			n := int64(0)
			measure(b, func() error {
				all, _, err := s.DeadLetterTallies(b.Context(), plan.f, 0, time.Time{})
				n = 0
				for i := range all {
					n += all[i].N
				}
				return err
			})
			b.ReportMetric(float64(n), "dead-letters")
		})
	}
}

// benchGathering gathers runs over everything that is open, 500 at a time, each once the one before is cancelled.
func (g *graveyard) benchGathering(b *testing.B, s Store) {
	b.Run("gathering 500", func(b *testing.B) {
		id, n := "", 0
		step := func(state journal.BulkState) {
			_, err := transact(b.Context(), s, nil, func(x *transaction) {
				x.entry(journal.Entry{Kind: journal.BulkEntry, At: at(0), Body: "{}"})
				x.Runs = []journal.BulkRun{{ID: id, Action: journal.BulkRetry, State: state, Through: 1 << 60, CreatedAt: at(0)}}
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		done := true
		measure(b, func() (err error) {
			if done {
				if id != "" {
					step(journal.BulkCancelled)
				}
				id, n = identity().String(), n+1
				step(journal.BulkPreparing)
			}
			done, err = s.GatherBulkItems(b.Context(), id, 500, "busy", at(0))
			return err
		})
		step(journal.BulkCancelled)
		b.ReportMetric(float64(n), "runs")
	})
	b.Run("a decision of a run", func(b *testing.B) { g.benchDecisions(b, s, "a run") })
	b.Run("a decision of a person", func(b *testing.B) { g.benchDecisions(b, s, "") })
}

// benchDecisions discards dead letters one by one.
func (g *graveyard) benchDecisions(b *testing.B, s Store, run string) {
	n := g.total - 1
	if run != "" {
		n = g.total * 3 / 4
	}
	measure(b, func() error {
		of, id := g.subject(n), g.id(n)
		n--
		_, err := transact(b.Context(), s, []journal.Lookup{{Subject: of, DeadLetter: id}}, func(x *transaction) {
			x.entry(journal.Entry{Kind: journal.ReviewEntry, Subject: of, At: at(0), Body: "{}"})
			if d := x.histories[0].DeadLetter; d != nil {
				d.State, d.Run = journal.DeadLetterDiscarded, run
				x.DeadLetters = append(x.DeadLetters, journal.KeyedDeadLetter{Key: x.histories[0].Key, DeadLetter: *d})
			}
		})
		return err
	})
}
