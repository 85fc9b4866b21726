package audit

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
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
	{name: "tenant", of: func(r *Record) string { return inert(r.Tenant) }},
	{name: "policy", of: func(r *Record) string { return inert(r.Policy) }},
	{name: "claimId", of: func(r *Record) string { return inert(r.ClaimID) }},
	{name: "submissionError", in: func(a *Analysis) string { return inert(a.SubmissionError) }},
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
	{name: "retryReason", in: func(a *Analysis) string { return inert(a.RetryReason) }},
	{name: "executionTimeMs", in: func(a *Analysis) string { return strconv.FormatFloat(a.ExecutionTimeMs, 'f', -1, 64) }},
	{name: "rule", in: func(a *Analysis) string { return string(a.Rule) }},
	{name: "reason", in: func(a *Analysis) string { return inert(string(a.Reason)) }},
	{name: "matchedRule", in: func(a *Analysis) string { return inert(given(a.MatchedRule)) }},
	{name: "outcome", in: func(a *Analysis) string { return string(a.Outcome) }},
	{name: "responsibleTeam", in: func(a *Analysis) string { return inert(given(a.ResponsibleTeam)) }},
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
	{name: "body", of: func(r *Record) string { return inert(string(r.Body)) }},
	{name: "matchedText", in: func(a *Analysis) string { return inert(given(a.MatchedText)) }},
	{name: "catalogue", in: func(a *Analysis) string { return inert(given(a.Catalogue)) }},
}

// eventAt is the time of one of the six events, empty where it did not happen.
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

// inert is s as no spreadsheet takes it for a formula: one that begins as they do gets an apostrophe before it. What
// comes from outside (an error, an id, a name in a catalogue) may begin with anything.
func inert(s string) string {
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(s, " \u00a0\ufeff"))
	if strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) && s != "" {
		return "'" + s
	}
	return s
}

// table writes RFC 4180: commas, CRLF, quotes where they are needed, a header even where nothing follows.
type table struct {
	csv *csv.Writer
	row []string
}

func newTable(w io.Writer) *table {
	t := &table{csv.NewWriter(w), make([]string, len(columns))}
	t.csv.UseCRLF = true
	for i := range columns {
		t.row[i] = columns[i].name
	}
	_ = t.csv.Write(t.row) // flush tells what went wrong
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
