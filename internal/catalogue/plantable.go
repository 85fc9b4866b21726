package catalogue

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/text"
)

// when is how an instant is shown.
const when = "Mon 2006-01-02 15:04 -0700"

// Table writes p as text for a terminal: what holds, a line for each retry with the total limit below them, the
// remarks. The error is the writer's.
func (p *Plan) Table(to io.Writer) error {
	w := &bytes.Buffer{}
	fmt.Fprintln(w, p.Policy)
	row := func(name, value string) { fmt.Fprintf(w, "%-12s %s\n", name, value) }
	if p.Description != "" {
		row("description", p.Description)
	}
	if p.FirstFailure != nil {
		row("destination", p.Destination)
		row("fails first", p.FirstFailure.Format(when))
	}
	row("retries", fmt.Sprint(p.MaxRetries))
	if p.MaxRetries > 0 {
		row("backoff", p.Backoff)
	}
	row("total limit", p.limitWords())
	if len(p.Retries) > 0 {
		p.ladder(w)
	}
	fmt.Fprintln(w)
	for _, sentence := range p.Remarks {
		fmt.Fprintln(w, sentence)
	}
	_, err := w.WriteTo(to)
	return err
}

func (p *Plan) limitWords() string {
	if p.TotalLimit == 0 {
		return "none"
	}
	return p.TotalLimit.String() + " from the first failure"
}

func (p *Plan) ladder(w *bytes.Buffer) {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "\n\twait before it\t\t\tfrom the first failure")
	fmt.Fprintln(table, "retry\tearliest\tnominal\tlatest\tearliest\tnominal\tlatest")
	for _, r := range p.Retries {
		fmt.Fprintf(table, "%d\t%s\t%s%s\n", r.Number, r.Wait.cells(), r.FromFirst.cells(), r.notes())
	}
	if p.TotalLimit > 0 {
		fmt.Fprintf(table, "limit\t\t\t\t%[1]s\t%[1]s\t%[1]s\n", p.TotalLimit)
	}
	_ = table.Flush() // a buffer takes all
}

func (r Range) cells() string { return fmt.Sprintf("%s\t%s\t%s", r.Earliest, r.Nominal, r.Latest) }

// notes say whether a retry may not be made at all, when it is made, and why not before.
func (r *PlannedRetry) notes() (s string) {
	if r.MayPassLimit {
		s = "  may pass the limit"
	}
	if r.At != nil {
		s += "\t" + r.At.Format(when)
	}
	if r.Why != "" {
		s += " (closed before: " + r.Why + ")"
	}
	return s
}

// Backoff returns a rule in words: exponential, constant or a list, with its bounds, jitter and rounding.
func Backoff(r *decision.BackoffRule) string {
	clauses := []string{growthOf(r)}
	if r.Factor > 1 && len(r.List) == 0 || len(r.List) > 0 && r.Max < slices.Max(r.List) {
		clauses[0] += ", at most " + text.Duration(r.Max)
	}
	if r.Jitter > 0 {
		clauses = append(clauses, "jitter ±"+strconv.FormatFloat(r.Jitter*100, 'g', 4, 64)+" %")
	}
	if r.Min > 0 && (r.Jitter > 0 || r.Min > r.Raw(0)) {
		clauses = append(clauses, "at least "+text.Duration(r.Min))
	}
	if r.Rounding > time.Millisecond {
		clauses = append(clauses, "rounded to "+text.Duration(r.Rounding))
	}
	return strings.Join(clauses, "; ")
}

func growthOf(r *decision.BackoffRule) string {
	switch {
	case len(r.List) > 0:
		waits := make([]string, 0, len(r.List))
		for _, d := range r.List {
			waits = append(waits, text.Duration(d))
		}
		return "list: " + strings.Join(waits, ", ")
	case r.Factor > 1:
		return "exponential: " + text.Duration(r.Base) + ", each " + strconv.FormatFloat(r.Factor, 'g', -1, 64) +
			" times the one before"
	default:
		return "constant: " + text.Duration(r.Base)
	}
}
