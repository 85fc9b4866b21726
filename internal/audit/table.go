package audit

import (
	"encoding/csv"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// column of the table.
type column struct {
	name string
	// of a record; of an attempt, which entries have nothing of. One of the two is nil.
	of func(*Record) string
	in func(*Analysis) string
}

// columns of the table, in their order; new ones go to the end.
var columns = []column{
	{name: "record", of: func(r *Record) string { return whole(r.Record) }},
	{name: "kind", of: func(r *Record) string { return r.Kind }},
	{name: "timestamp", of: func(r *Record) string { return r.Timestamp }},
	{name: "tenant", of: func(r *Record) string { return Inert(r.Tenant) }},
	{name: "policy", of: func(r *Record) string { return Inert(r.Policy) }},
	{name: "claimId", of: func(r *Record) string { return Inert(r.ClaimID) }},
	{name: "submissionError", in: func(a *Analysis) string { return Inert(a.SubmissionError) }},
	{name: "errorClassification", in: func(a *Analysis) string { return string(a.ErrorClassification) }},
	{name: "retryCount", in: func(a *Analysis) string { return whole(a.RetryCount) }},
	{name: "analysedRetryCount", in: func(a *Analysis) string { return whole(a.AnalysedRetryCount) }},
	{name: "maxRetries", in: func(a *Analysis) string { return whole(a.MaxRetries) }},
	{name: "shouldRetry", in: func(a *Analysis) string { return strconv.FormatBool(a.ShouldRetry) }},
	{name: "backoffMinutes", in: func(a *Analysis) string {
		if a.BackoffMinutes == nil {
			return ""
		}
		return whole(*a.BackoffMinutes)
	}},
	{name: "nextRetryTime", in: func(a *Analysis) string { return given(a.NextRetryTime) }},
	{name: "retryReason", in: func(a *Analysis) string { return Inert(a.RetryReason) }},
	{name: "executionTimeMs", in: func(a *Analysis) string {
		// A point groups thousands there.
		return strings.Replace(strconv.FormatFloat(a.ExecutionTimeMs, 'f', -1, 64), ".", ",", 1)
	}},
	{name: "rule", in: func(a *Analysis) string { return string(a.Rule) }},
	{name: "reason", in: func(a *Analysis) string { return Inert(string(a.Reason)) }},
	{name: "matchedRule", in: func(a *Analysis) string { return Inert(given(a.MatchedRule)) }},
	{name: "outcome", in: func(a *Analysis) string { return string(a.Outcome) }},
	{name: "responsibleTeam", in: func(a *Analysis) string { return Inert(given(a.ResponsibleTeam)) }},
	{name: "deadLetterId", in: func(a *Analysis) string { return given(a.DeadLetterID) }},
	{name: "attemptNumber", in: func(a *Analysis) string { return whole(a.AttemptNumber) }},
	{name: "revision", in: func(a *Analysis) string { return whole(a.Revision) }},
	{name: "episode", in: func(a *Analysis) string { return whole(a.Episode) }},
	{name: "jobKey", in: func(a *Analysis) string { return whole(a.JobKey) }},
	{name: "elementInstanceKey", in: func(a *Analysis) string { return whole(a.ElementInstanceKey) }},
	{name: "processInstanceKey", in: func(a *Analysis) string { return whole(a.ProcessInstanceKey) }},
	{name: "identity", in: func(a *Analysis) string { return a.Identity }},
	eventAt("errorReceivedAt", errorReceived),
	eventAt("errorClassifiedAt", errorClassified),
	eventAt("retryCountCheckedAt", retryCountChecked),
	eventAt("backoffCalculatedAt", backoffCalculated),
	eventAt("retryDecidedAt", retryDecided),
	eventAt("nextAttemptScheduledAt", nextAttemptScheduled),
	{name: "body", of: func(r *Record) string { return Inert(string(r.Body)) }},
	{name: "matchedText", in: func(a *Analysis) string { return Inert(given(a.MatchedText)) }},
	{name: "catalogue", in: func(a *Analysis) string { return Inert(given(a.Catalogue)) }},
}

// eventAt returns the time of one of the six events, empty where it did not happen.
func eventAt(name string, n int) column {
	return column{name: name, in: func(a *Analysis) string {
		for _, e := range a.Events {
			if e.Number == n {
				return e.At
			}
		}
		return ""
	}}
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

func given(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// opensFormula matches where a spreadsheet may see a formula begin: at the beginning of a cell, or behind whatever may
// separate cells where the file is opened, with blanks and quotation marks between them.
var opensFormula = regexp.MustCompile(`(^|[;,\t|\r\n])([ "\x{a0}\x{feff}]*)([=+\-@＝＋－＠])`)

// Inert returns s as no spreadsheet takes it, or a part of it, for a formula: an apostrophe stands before what would
// open one. What comes from outside (an error, an id, a name in a catalogue) may hold anything.
func Inert(s string) string {
	if s != "" && strings.IndexByte("\t\r\n", s[0]) >= 0 {
		s = "'" + s
	}
	return opensFormula.ReplaceAllString(s, "$1$2'$3")
}

// NewCSV returns what writes RFC 4180 as Excel opens it in Brazil: semicolons, and a byte order mark, which tells that
// it is UTF-8. A line "sep=;" would tell the separator to an Excel of elsewhere, and make it forget the byte order mark.
func NewCSV(w io.Writer) *csv.Writer {
	_, _ = io.WriteString(w, "\ufeff") // what is written next tells what went wrong
	c := csv.NewWriter(w)
	c.Comma, c.UseCRLF = ';', true
	return c
}

// table has decimal commas, quotes where they are needed, and a header even where nothing follows.
type table struct {
	csv *csv.Writer
	row []string
}

func newTable(w io.Writer) *table {
	t := &table{NewCSV(w), make([]string, len(columns))}
	for i := range columns {
		t.row[i] = columns[i].name
	}
	_ = t.csv.Write(t.row)
	return t
}

func (t *table) write(r *Record) error {
	for i := range columns {
		switch c := &columns[i]; {
		case c.of != nil:
			t.row[i] = c.of(r)
		case r.Analysis != nil:
			t.row[i] = c.in(r.Analysis)
		default:
			t.row[i] = ""
		}
	}
	return t.csv.Write(t.row)
}

func (t *table) flush() error {
	t.csv.Flush()
	return t.csv.Error()
}
