package console

import (
	"context"
	"sync"
	"time"

	"retry-worker/internal/journal"
	"retry-worker/internal/kpi"
)

// figuresKept for so long: they are made of ten thousands of sums, and every open overview asks for them every five
// seconds.
const figuresKept = 10 * time.Second

// figures are what the overview makes of the journal's sums. Safe for concurrent use.
type figures struct {
	mu    sync.Mutex
	at    time.Time
	known summary
}

// summary of the last week, in no language.
type summary struct {
	kpis []kpi.KPI
	// moved are the last 24 hours and the 24 hours before, for each of movements.
	moved [len(movements)][2]int64
}

// movements are what may grow, by the texts that name them.
var movements = [...]struct {
	key  string
	name journal.FigureName
}{
	{"movement.decisions", journal.FigureDecisions}, {"movement.permanent", journal.FigurePermanent},
	{"movement.exhausted", journal.FigureExhausted}, {"movement.recovered", journal.FigureRecoveredRetried},
}

// of the journal at instant now, at most figuresKept old. Who comes while they are made waits for them.
func (f *figures) of(ctx context.Context, from journal.Statistics, policies []string, now time.Time) (summary, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if age := now.Sub(f.at); !f.at.IsZero() && age >= 0 && age < figuresKept {
		return f.known, nil
	}
	all, err := from.Figures(ctx, kpi.FirstSlot(now))
	if err != nil {
		return summary{}, err
	}
	f.at, f.known = now, summary{kpi.All(all, policies, now), moved(all, now)}
	return f.known, nil
}

// moved adds up the last 24 hours and the 24 hours before, by slots of ten minutes.
func moved(all []journal.Figure, at time.Time) (sums [len(movements)][2]int64) {
	now := journal.SlotOf(at)
	const day = int64(24 * time.Hour / journal.Slot)
	for i := range all {
		f := &all[i]
		before := 0
		if f.Slot <= now-day {
			before = 1
		}
		if f.Slot <= now-2*day {
			continue
		}
		for m := range movements {
			if movements[m].name == f.Name {
				sums[m][before] += f.Value
			}
		}
	}
	return sums
}
