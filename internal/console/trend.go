package console

import (
	"context"
	"slices"
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
	name, minus journal.SumName
}{
	{key: "trend.failures", name: journal.SumDecisions},
	{key: "trend.retried", name: journal.SumScheduled},
	{key: "trend.recovered", name: journal.SumRecoveredRetried},
	{key: "trend.letters", name: journal.SumDecisions, minus: journal.SumScheduled},
	{key: "trend.held", name: journal.SumHeld},
}

// of the journal at instant now, at most figuresKept old. Who comes while they are made waits for them.
func (f *figures) of(ctx context.Context, from journal.Statistics, policies []string, now time.Time) (summary, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if age := now.Sub(f.at); !f.at.IsZero() && age >= 0 && age < figuresKept {
		return f.known, nil
	}
	all, err := from.Sums(ctx, kpi.FirstSlot(now))
	if err != nil {
		return summary{}, err
	}
	f.at, f.known = now, summary{kpi.All(all, policies, now), trendsOf(all, now)}
	return f.known, nil
}

// trendsOf figures at an instant, by slots of ten minutes.
func trendsOf(all []journal.Sum, at time.Time) (sums [len(trends)]trend) {
	const hour = int64(time.Hour / journal.Slot)
	now := journal.SlotOf(at)
	for i := range all {
		f := &all[i]
		ago := max(now-f.Slot, 0) / hour
		for n := range trends {
			value := f.N
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

// trendData is what happened in the last 24 hours and 7 days: small charts, and tables of what they are drawn by.
type trendData struct {
	Rows []trendRow
	// Hours and Days are those tables, the latest first.
	Hours, Days []trendLine
}

// trendRow is one figure.
type trendRow struct {
	Name      string
	Day, Week int64
	// Change against the 24 hours before, as a sign and in words.
	Change, ChangeInWords string
	DayBars, WeekBars     []rect
}

// trendLine is a row of a table.
type trendLine struct {
	From   Moment
	Values []int64
}

func (v *visit) trend(of *[len(trends)]trend) *trendData {
	d := &trendData{}
	until := journal.SlotTime(journal.SlotOf(v.now) + 1) // the slot that runs is counted as far as it got
	lines := func(n int, long time.Duration, value func(t *trend, i int) int64) (all []trendLine) {
		for i := range n {
			l := trendLine{From: v.At(until.Add(-time.Duration(n-i) * long))}
			for k := range of {
				l.Values = append(l.Values, value(&of[k], i))
			}
			all = append(all, l)
		}
		slices.Reverse(all)
		return all
	}
	d.Hours = lines(24, time.Hour, func(t *trend, i int) int64 { return t.hours[i] })
	d.Days = lines(7, 24*time.Hour, func(t *trend, i int) int64 { return t.days[i] })
	for k := range of {
		t := &of[k]
		row := trendRow{Name: v.T(trends[k].key), Day: t.days[6], DayBars: bars(t.hours[:]), WeekBars: bars(t.days[:])}
		for _, n := range t.days {
			row.Week += n
		}
		row.Change, row.ChangeInWords = v.change(t.days[6] - t.days[5])
		d.Rows = append(d.Rows, row)
	}
	return d
}

// change as a sign with a number, and in words.
func (v *visit) change(by int64) (sign, words string) {
	switch {
	case by > 0:
		return "▲ " + v.Number(by), v.T("movement.more", v.Number(by))
	case by < 0:
		return "▼ " + v.Number(-by), v.T("movement.less", v.Number(-by))
	default:
		return "=", v.T("movement.same")
	}
}

// bars as high as their numbers, beside one another.
func bars(values []int64) []rect {
	const width, height = 100.0, 24.0
	most, each := max(slices.Max(values), 1), width/float64(len(values))
	all := make([]rect, 0, len(values))
	for i, n := range values {
		if n > 0 {
			h := max(height*float64(n)/float64(most), 1)
			all = append(all, rect{X: float64(i) * each, Y: height - h, Width: 0.8 * each, Height: h})
		}
	}
	return all
}
