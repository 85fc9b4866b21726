package plan

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/decision"
)

const day = 24 * time.Hour

// units of Words, the largest first.
var units = [...]struct {
	name   string
	length time.Duration
}{{"d", day}, {"h", time.Hour}, {"min", time.Minute}}

// Words returns d, which is at least 0, as people write it: 5 min, 2 h 35 min, 1.5 s, 48 h, 3 d. Days are used from
// three on; exact to the millisecond.
func Words(d time.Duration) string {
	var all []string
	for _, unit := range units {
		if unit.length == day && d < 3*day {
			continue
		}
		if n := d / unit.length; n > 0 {
			all = append(all, strconv.FormatInt(int64(n), 10)+" "+unit.name)
			d -= n * unit.length
		}
	}
	if seconds := float64(d.Milliseconds()) / 1000; seconds > 0 || len(all) == 0 {
		all = append(all, strconv.FormatFloat(seconds, 'f', -1, 64)+" s")
	}
	return strings.Join(all, " ")
}

// Backoff returns a rule in words: exponential, constant or a list, with its bounds, jitter and rounding.
func Backoff(r *decision.BackoffRule) string {
	clauses := []string{growth(r)}
	if r.Factor > 1 && len(r.List) == 0 || len(r.List) > 0 && r.Max < slices.Max(r.List) {
		clauses[0] += ", at most " + Words(r.Max)
	}
	if r.Jitter > 0 {
		clauses = append(clauses, "jitter ±"+strconv.FormatFloat(r.Jitter*100, 'g', 4, 64)+" %")
	}
	if r.Min > 0 && (r.Jitter > 0 || r.Min > r.Raw(0)) {
		clauses = append(clauses, "at least "+Words(r.Min))
	}
	if r.Rounding > time.Millisecond {
		clauses = append(clauses, "rounded to "+Words(r.Rounding))
	}
	return strings.Join(clauses, "; ")
}

func growth(r *decision.BackoffRule) string {
	switch {
	case len(r.List) > 0:
		waits := make([]string, 0, len(r.List))
		for _, d := range r.List {
			waits = append(waits, Words(d))
		}
		return "list: " + strings.Join(waits, ", ")
	case r.Factor > 1:
		return "exponential: " + Words(r.Base) + ", each " + strconv.FormatFloat(r.Factor, 'g', -1, 64) +
			" times the one before"
	default:
		return "constant: " + Words(r.Base)
	}
}
