package console

import (
	"slices"
	"time"
)

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
	DayBars, WeekBars     []trendBar
}

// trendBar is one bar of a chart that is 100 wide and 24 high.
type trendBar struct{ X, Y, Width, Height float64 }

// trendLine is a row of a table.
type trendLine struct {
	From   Moment
	Values []int64
}

func (v *visit) trend(of *[len(trends)]trend) *trendData {
	d := &trendData{}
	now := v.now.Truncate(time.Hour)
	lines := func(n int, long time.Duration, value func(t *trend, i int) int64) (all []trendLine) {
		for i := range n {
			l := trendLine{From: v.At(now.Add(-time.Duration(n-1-i) * long))}
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
func bars(values []int64) []trendBar {
	const width, height = 100.0, 24.0
	most, each := max(slices.Max(values), 1), width/float64(len(values))
	all := make([]trendBar, 0, len(values))
	for i, n := range values {
		if n > 0 {
			h := max(height*float64(n)/float64(most), 1)
			all = append(all, trendBar{float64(i) * each, height - h, 0.8 * each, h})
		}
	}
	return all
}
