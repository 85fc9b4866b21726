package plan

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

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
	return Words(time.Duration(p.TotalLimit)) + " from the first failure"
}

func (p *Plan) ladder(w *bytes.Buffer) {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "\n\twait before it\t\t\tfrom the first failure")
	fmt.Fprintln(table, "retry\tearliest\tnominal\tlatest\tearliest\tnominal\tlatest")
	for _, r := range p.Retries {
		fmt.Fprintf(table, "%d\t%s\t%s%s\n", r.Number, cells(r.Wait), cells(r.FromFirst), p.mark(&r)+r.when())
	}
	if p.TotalLimit > 0 {
		limit := Words(time.Duration(p.TotalLimit))
		fmt.Fprintf(table, "limit\t\t\t\t%s\t%s\t%s\n", limit, limit, limit)
	}
	_ = table.Flush() // a buffer takes all
}

func (p *Plan) mark(r *Retry) string {
	if r.MayPassLimit {
		return "  may pass the limit"
	}
	return ""
}

func cells(r Range) string {
	return Words(time.Duration(r.Earliest)) + "\t" + Words(time.Duration(r.Nominal)) + "\t" +
		Words(time.Duration(r.Latest))
}
