package main

import (
	"fmt"
	"strconv"
	"text/tabwriter"

	"retry-worker/internal/console"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// sheet prints lines of a name and a text, those without a text left out, when done is called.
func (c *cli) sheet() (line func(name, text string), done func()) {
	const most = 2000
	table := tabwriter.NewWriter(c.out, 0, 4, columnGap, ' ', 0)
	return func(name, text string) {
			if text != "" {
				fmt.Fprintf(table, "%s\t%s\n", name, inertLine(text, most))
			}
		}, func() {
			_ = table.Flush() // the writer beneath remembers what could not be written
		}
}

// printDeadLetter prints one, a line for each thing that is known of it.
func (c *cli) printDeadLetter(d *console.DeadLetter) {
	line, done := c.sheet()
	defer done()
	line("dead letter", d.ID)
	line("state", string(d.State))
	line("subject", d.Subject.ID+" ("+d.Subject.Policy+ofTenant(d.Subject.Tenant)+")")
	line("outcome", string(d.Outcome)+" ("+string(d.Reason)+")")
	line("to act", string(d.ResponsibleTeam))
	line("error", d.Error)
	line("class", classWords(d.ErrorClassification, d.MatchedRule))
	line("retries", fmt.Sprintf("%d of %d%s", d.RetryCount, d.MaxRetries, limitWords(d)))
	line("first failure", value(d.FirstFailure))
	line("given up", d.CreatedAt)
	line("process", processWords(d))
	if r := d.Review; r != nil {
		line("decided", r.Decision+forceWords(r)+" by "+r.By+" at "+r.At)
		line("bulk run", value(d.BulkRun))
		line("because", r.Reason)
		line("next retry", value(r.NextRetryTime))
		line("delivery", deliveryWords[d.Delivery])
	}
}

func ofTenant(tenant string) string {
	if tenant == journal.DefaultTenant {
		return ""
	}
	return ", tenant " + tenant
}

// value is a text that may not be there.
func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// classWords are a class and the rule that gave it.
func classWords(class, rule *string) string {
	if class != nil && rule != nil {
		return *class + " (" + *rule + ")"
	}
	return value(class)
}

func limitWords(d *console.DeadLetter) string {
	if d.State == journal.DeadLetterOpen && d.ForceNeeded {
		return " (a retry takes --force)"
	}
	return ""
}

func forceWords(r *console.Review) string { return forced(r.ForceRetry, r.Fresh) }

// forced says that limits are overridden.
func forced(force, fresh bool) string {
	switch {
	case fresh:
		return ", forced, from the beginning"
	case force:
		return ", forced"
	default:
		return ""
	}
}

func processWords(d *console.DeadLetter) string {
	switch d.Process {
	case deadletter.Waiting:
		return "waits (instance " + strconv.FormatInt(d.ProcessInstanceKey, 10) + ")"
	case deadletter.Expected:
		return "has not come to its review task yet (instance " + strconv.FormatInt(d.ProcessInstanceKey, 10) + ")"
	case deadletter.Nobody:
		return "nobody waits: it can be discarded; start the process again to send it again"
	default:
		return ""
	}
}

var deliveryWords = map[string]string{
	"pending": "the process gets it as soon as the engine takes it",
	"taken":   "the process took it",
	"nobody":  "no process waits for it",
}
