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
	kpis   []kpi.KPI
	trends [len(trends)]trend
}

// trend is how often something happened in each of the last 24 hours, and in each of the last seven times 24 hours; the
// latest is last.
type trend struct {
	hours [24]int64
	days  [7]int64
}

// trends are what may grow, by the texts that name them: figures, and those that are taken off.
var trends = [...]struct {
	key         string
	name, minus journal.FigureName
}{
	{key: "trend.failures", name: journal.FigureDecisions},
	{key: "trend.retried", name: journal.FigureScheduled},
	{key: "trend.recovered", name: journal.FigureRecoveredRetried},
	{key: "trend.letters", name: journal.FigureDecisions, minus: journal.FigureScheduled},
	{key: "trend.held", name: journal.FigureHeld},
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
	f.at, f.known = now, summary{kpi.All(all, policies, now), trendsOf(all, now)}
	return f.known, nil
}

// trendsOf figures at an instant, by slots of ten minutes.
func trendsOf(all []journal.Figure, at time.Time) (sums [len(trends)]trend) {
	const hour = int64(time.Hour / journal.Slot)
	now := journal.SlotOf(at)
	for i := range all {
		f := &all[i]
		ago := max(now-f.Slot, 0) / hour
		for n := range trends {
			value := f.Value
			switch f.Name {
			case trends[n].name:
			case trends[n].minus:
				value = -value
			default:
				continue
			}
			if t := &sums[n]; ago < 24 {
				t.hours[23-ago] += value
			}
			if t := &sums[n]; ago < 7*24 {
				t.days[6-ago/24] += value
			}
		}
	}
	return sums
}
