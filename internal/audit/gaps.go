package audit

import "retry-worker/internal/journal"

// gaps are runs of records that are missing, in ascending order.
type gaps struct {
	runs  []journal.Run
	total int64
}

// mostGaps that are remembered one by one: a purge leaves one behind, and some more while it runs.
const mostGaps = 4096

// add the next record that is missing.
func (g *gaps) add(n int64) {
	g.total++
	if last := len(g.runs) - 1; last >= 0 && g.runs[last].Last == n-1 {
		g.runs[last].Last = n
		return
	}
	g.runs = append(g.runs, journal.Run{First: n, Last: n})
}

// full tells that the gaps should be merged.
func (g *gaps) full() bool { return len(g.runs) > mostGaps }

// merge makes one gap of all.
func (g *gaps) merge() {
	g.runs = append(g.runs[:0], journal.Run{First: g.runs[0].First, Last: g.runs[len(g.runs)-1].Last})
}

// above is the first missing record behind a number.
func (g *gaps) above(n int64) (int64, bool) {
	for _, r := range g.runs {
		if r.Last > n {
			return max(r.First, n+1), true
		}
	}
	return 0, false
}
