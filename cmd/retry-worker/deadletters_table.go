package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"retry-worker/internal/console"
	"retry-worker/internal/journal"
	"retry-worker/internal/review"
)

const (
	// columnGap between two columns.
	columnGap = 2
	// maxCell characters of a cell that is no error, and maxError of an error where there is no terminal.
	maxCell, maxError = 40, 100
	// leastError characters of an error are worth a column.
	leastError = 16
	// maxWidth that COLUMNS is believed.
	maxWidth = 1000
)

// deadLetterTable prints dead letters page by page. Its columns are chosen by the first page.
type deadLetterTable struct {
	out     io.Writer
	width   int // of the terminal; 0: there is none
	columns []column
	rows    int
}

// column of the table. The last is the error.
type column struct {
	name  string
	rank  int // the highest goes first where the terminal is too narrow; 0 always stays
	of    func(*console.DeadLetter) string
	width int
}

func (c *cli) deadLetterTable() *deadLetterTable {
	return &deadLetterTable{out: c.out, width: terminalWidth(c.out), columns: []column{
		{"ID", 0, func(d *console.DeadLetter) string { return d.ID }, 0},
		{"SUBJECT", 1, func(d *console.DeadLetter) string { return d.Subject.ID }, 0},
		{"SINCE", 6, func(d *console.DeadLetter) string { return minute(d.CreatedAt) }, 0},
		{"STATE", 5, func(d *console.DeadLetter) string { return string(d.State) }, 0},
		{"TEAM", 3, func(d *console.DeadLetter) string { return string(d.ResponsibleTeam) }, 0},
		{"REASON", 2, func(d *console.DeadLetter) string { return string(d.Reason) }, 0},
		{"TRIES", 7, func(d *console.DeadLetter) string { return fmt.Sprintf("%d/%d", d.RetryCount, d.MaxRetries) }, 0},
		{"ERROR", 4, func(d *console.DeadLetter) string { return d.Error }, 0},
	}}
}

// minute is an instant without its seconds.
func minute(instant string) string {
	if len(instant) < len("2026-03-02T10:00") {
		return instant
	}
	return instant[:len("2026-03-02")] + " " + instant[len("2026-03-02T"):len("2026-03-02T10:00")]
}

// print adds a page.
func (t *deadLetterTable) print(items []console.DeadLetter) {
	if len(items) == 0 {
		return
	}
	if t.rows == 0 {
		t.fit(items)
		t.row(func(c *column) string { return c.name })
	}
	for i := range items {
		t.row(func(c *column) string { return c.of(&items[i]) })
	}
	t.rows += len(items)
}

// fit gives each column the width that its cells take, and leaves out what the terminal has no room for.
func (t *deadLetterTable) fit(items []console.DeadLetter) {
	for i := range t.columns {
		c := &t.columns[i]
		most := maxCell
		if c.name == "ERROR" {
			most = maxError
		}
		c.width = len(c.name)
		for j := range items {
			c.width = max(c.width, utf8.RuneCountInString(inertLine(c.of(&items[j]), most)))
		}
	}
	if t.width == 0 {
		return
	}
	last := &t.columns[len(t.columns)-1]
	wanted := last.width
	last.width = min(last.width, leastError)
	for t.taken() > t.width && len(t.columns) > 1 {
		worst := 0
		for i := range t.columns {
			if t.columns[i].rank > t.columns[worst].rank {
				worst = i
			}
		}
		t.columns = append(t.columns[:worst:worst], t.columns[worst+1:]...)
	}
	if last = &t.columns[len(t.columns)-1]; last.name == "ERROR" {
		last.width = min(wanted, last.width+t.width-t.taken())
	}
}

// taken is how wide a row is.
func (t *deadLetterTable) taken() int {
	width := -columnGap
	for i := range t.columns {
		width += t.columns[i].width + columnGap
	}
	return width
}

func (t *deadLetterTable) row(cell func(*column) string) {
	var line strings.Builder
	for i := range t.columns {
		c := &t.columns[i]
		text := inertLine(cell(c), c.width)
		line.WriteString(text)
		if i < len(t.columns)-1 {
			line.WriteString(strings.Repeat(" ", c.width-utf8.RuneCountInString(text)+columnGap))
		}
	}
	fmt.Fprintln(t.out, strings.TrimRight(line.String(), " "))
}

// terminalWidth is how many characters a line of the output may have; 0 where that is no terminal and COLUMNS does not
// say.
func terminalWidth(out io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 && n <= maxWidth {
		return n
	}
	if checked, is := out.(*checkedWriter); is {
		out = checked.w
	}
	if file, is := out.(*os.File); is {
		return columnsOf(file)
	}
	return 0
}

// printDeadLetter prints one, a line for each thing that is known of it.
func (c *cli) printDeadLetter(d *console.DeadLetter) {
	const most = 2000
	table := tabwriter.NewWriter(c.out, 0, 4, columnGap, ' ', 0)
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(table, "%s\t%s\n", name, inertLine(text, most))
		}
	}
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
		line("because", r.Reason)
		line("next retry", value(r.NextRetryTime))
		line("delivery", deliveryWords[d.Delivery])
	}
	_ = table.Flush() // the writer beneath remembers what could not be written
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

func forceWords(r *console.Review) string {
	switch {
	case r.Fresh:
		return ", forced, from the beginning"
	case r.ForceRetry:
		return ", forced"
	default:
		return ""
	}
}

func processWords(d *console.DeadLetter) string {
	switch d.Process {
	case review.Waiting:
		return "waits (instance " + strconv.FormatInt(d.ProcessInstanceKey, 10) + ")"
	case review.Expected:
		return "has not come to its review task yet (instance " + strconv.FormatInt(d.ProcessInstanceKey, 10) + ")"
	case review.Nobody:
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
