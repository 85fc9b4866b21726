// Package audit shows the journal's records one by one and as an export, verifies the ledger, rebuilds the projections,
// and replays recorded failures with another catalogue (RN-BIL-005 §7, §10; RN-BIL-004 §7, §10).
package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// Record is one record of the audit as JSON: what both rules' §7.1 require, and what is needed to follow it up. Keys of
// the engine are strings, as JavaScript would round numbers.
type Record struct {
	// Record is its number in the ledger, from 1.
	Record int64  `json:"record"`
	Kind   string `json:"kind"`
	// Timestamp is when the analysis was made, or the entry recorded.
	Timestamp string `json:"timestamp"`
	Tenant    string `json:"tenant"`
	Policy    string `json:"policy"`
	// ClaimID is the subject's id, even if it is no claim.
	ClaimID string `json:"claimId"`
	// Analysis holds the fields of an attempt; nil for other records.
	*Analysis
	// Body is another record's body; absent for an attempt.
	Body json.RawMessage `json:"body,omitempty"`
}

// Analysis holds the fields of an attempt: the record of §7.1 with its events.
type Analysis struct {
	// SubmissionError has nothing personal in it.
	SubmissionError string                `json:"submissionError"`
	ShouldRetry     bool                  `json:"shouldRetry"`
	Rule            decision.BusinessRule `json:"rule"`
	Attempt
	// Context is the claim's; absent if there is none.
	Context            decision.Context `json:"context,omitempty"`
	ElementInstanceKey int64            `json:"elementInstanceKey,string"`
	// Identity is the same for the same job with the same inputs.
	Identity string `json:"identity"`
	// Events are in their order. Those of the backoff and the next attempt are there only with a retry.
	Events []Event `json:"events"`
}

// Attempt is one revision of an attempt, as the audit and a subject's story show it.
type Attempt struct {
	AttemptNumber int64 `json:"attemptNumber"`
	// Revision is above 0 if the decision was given again with a new time.
	Revision            int64                        `json:"revision"`
	Episode             int64                        `json:"episode"`
	ErrorClassification decision.ErrorClassification `json:"errorClassification"`
	// MatchedText is the text that the rule matched, with nothing personal in it. Catalogue is the version of the
	// catalogue that decided. Both are null if unknown.
	MatchedRule *string          `json:"matchedRule"`
	MatchedText *string          `json:"matchedText"`
	Catalogue   *string          `json:"catalogue"`
	Reason      decision.Reason  `json:"reason"`
	Outcome     decision.Outcome `json:"outcome"`
	// RetryCount is the count that the process got, AnalysedRetryCount the one that was decided on (R12).
	AnalysedRetryCount int64 `json:"analysedRetryCount"`
	RetryCount         int64 `json:"retryCount"`
	MaxRetries         int64 `json:"maxRetries"`
	// BackoffMinutes and NextRetryTime are null if no retry follows.
	BackoffMinutes *int64  `json:"backoffMinutes"`
	NextRetryTime  *string `json:"nextRetryTime"`
	RetryReason    string  `json:"retryReason"`
	// SuccessProbability is the retry's, Taught the teaching that decided (R26); absent if there is none.
	SuccessProbability float64 `json:"successProbability,omitempty"`
	PossiblyAccepted   bool    `json:"possiblyAccepted"` // R33
	Taught             int64   `json:"taught,omitempty"`
	ResponsibleTeam    *string `json:"responsibleTeam"`
	DeadLetterID       *string `json:"deadLetterId"`
	ExecutionTimeMs    float64 `json:"executionTimeMs"`
	JobKey             int64   `json:"jobKey,string"`
	ProcessInstanceKey int64   `json:"processInstanceKey,string"`
}

// Event is one of the six of RN-BIL-005 §7.1.
type Event struct {
	// Number is its number in the rule's list, from 1 to 6.
	Number int    `json:"number"`
	Event  string `json:"event"`
	At     string `json:"at"`
}

// The events of §7.1, by their numbers there.
const (
	errorReceived = 1 + iota
	errorClassified
	retryCountChecked
	backoffCalculated
	retryDecided
	nextAttemptScheduled
)

// eventNames are the events' names, and the columns of their times in a table.
var eventNames = [...]struct{ event, column string }{
	errorReceived: {"error_received", "errorReceivedAt"}, errorClassified: {"error_classified", "errorClassifiedAt"},
	retryCountChecked: {"retry_count_checked", "retryCountCheckedAt"},
	backoffCalculated: {"backoff_calculated", "backoffCalculatedAt"}, retryDecided: {"retry_decided", "retryDecidedAt"},
	nextAttemptScheduled: {"next_attempt_scheduled", "nextAttemptScheduledAt"},
}

// Of returns r as JSON.
func Of(r *journal.Entry) Record {
	v := Record{Record: r.Record, Kind: string(r.Kind), Timestamp: decision.Instant(r.At), Tenant: r.Subject.Tenant,
		Policy: r.Subject.Policy, ClaimID: r.Subject.ID}
	if a := r.Attempt; a != nil {
		v.Timestamp = decision.Instant(a.AnalysedAt)
		v.Analysis = &Analysis{SubmissionError: a.Error, ShouldRetry: a.ShouldRetry(), Rule: a.Rule, Attempt: AttemptOf(a),
			Context: a.Context, ElementInstanceKey: a.ElementInstanceKey, Identity: a.Identity.String(), Events: events(a)}
		return v
	}
	if v.Body = r.Told(); !json.Valid(v.Body) { // somebody edited it: show it as a string
		v.Body = json.RawMessage(decision.Text(r.Body))
	}
	return v
}

// AttemptOf returns a as JSON.
func AttemptOf(a *journal.Attempt) Attempt {
	d := &a.Decision
	v := Attempt{
		AttemptNumber: a.Number, Revision: a.Revision, Episode: a.Episode, ErrorClassification: d.ErrorClassification,
		MatchedRule: journal.OrNull(d.MatchedRule), MatchedText: journal.OrNull(d.MatchedText),
		Catalogue: journal.OrNull(d.Catalogue), Reason: d.Reason, Outcome: d.Outcome, AnalysedRetryCount: a.AnalysedCount,
		RetryCount: d.RetryCount, MaxRetries: d.MaxRetries, NextRetryTime: journal.InstantOrNull(d.NextRetryTime),
		RetryReason: d.RetryReason, SuccessProbability: d.SuccessProbability, PossiblyAccepted: d.PossiblyAccepted,
		Taught: d.Taught, ResponsibleTeam: journal.OrNull(string(d.Team)), DeadLetterID: journal.OrNull(a.DeadLetter),
		ExecutionTimeMs: float64(a.Took.Microseconds()) / 1000, JobKey: a.JobKey, ProcessInstanceKey: a.ProcessInstanceKey,
	}
	if d.ShouldRetry() {
		v.BackoffMinutes = new(decision.Minutes(d.Wait()))
	}
	return v
}

// events returns an attempt's events. All but the first happen within microseconds and share the instant at which the
// decision was handed to the store, in milliseconds. AnalysedAt has the policy's precision (R7).
func events(a *journal.Attempt) []Event {
	decided := a.ReceivedAt.Add(a.Took).Truncate(time.Millisecond)
	all := make([]Event, 0, nextAttemptScheduled)
	for n := errorReceived; n <= nextAttemptScheduled; n++ {
		at := decided
		switch n {
		case errorReceived:
			at = a.ReceivedAt
		case backoffCalculated, nextAttemptScheduled:
			if !a.Decision.ShouldRetry() {
				continue
			}
		}
		all = append(all, Event{n, eventNames[n].event, decision.Instant(at)})
	}
	return all
}

// Format is the format of an export. The set is closed.
type Format string

// The formats: one JSON object per line, or RFC 4180 with a header.
const (
	JSONLines Format = "jsonl"
	CSV       Format = "csv"
)

// Formats lists every format.
func Formats() []Format { return []Format{JSONLines, CSV} }

// Selection chooses what is exported. Its zero value is everything.
type Selection struct {
	journal.RecordFilter
	// Policy and Tenant are those of the records; empty for all. They are for selections without a Subject.
	Policy, Tenant string
}

// takes reports whether the record has the wanted policy and tenant.
func (s *Selection) takes(r *journal.Entry) bool {
	return (s.Policy == "" || r.Subject.Policy == s.Policy) && (s.Tenant == "" || r.Subject.Tenant == s.Tenant)
}

// Progress is called after every page, from one goroutine at a time: at is the last record's number so far, of the
// journal's last, counted the number of records written or verified.
type Progress func(at, of, counted int64)

func (p Progress) tell(at, of, counted int64) {
	if p != nil {
		p(at, of, counted)
	}
}

// pageSize is how many records, links (of up to 24 KB) or rows are in memory at a time.
const pageSize = 500

// Export writes the selected records to w in order, up to the ledger's head at the beginning, and returns how many it
// wrote. It holds one page of them in memory. progress may be nil. Its errors are those of a, of w and of ctx; records
// written before stay written.
func Export(
	ctx context.Context, a journal.Reader, w io.Writer, s Selection, f Format, progress Progress,
) (written int64, err error) {
	buffer := bufio.NewWriterSize(w, 64<<10)
	var write func(*Record) error
	switch f {
	case JSONLines:
		e := json.NewEncoder(buffer)
		e.SetEscapeHTML(false)
		write = func(r *Record) error { return e.Encode(r) }
	case CSV:
		write = newTable(buffer)
	default:
		return 0, fmt.Errorf("the format is %q, expected one of %q", f, Formats())
	}
	for r, err := range archived(ctx, a, s.RecordFilter, progress, &written) {
		switch {
		case err != nil:
			return written, err
		case !s.takes(r):
			continue
		}
		if err := write(new(Of(r))); err != nil {
			return written, err
		}
		written++
	}
	return written, buffer.Flush()
}

// archived returns the records that the filter lets through, up to the ledger's head at the beginning. After each page
// it calls progress with the caller's count.
func archived(
	ctx context.Context, a journal.Reader, f journal.RecordFilter, progress Progress, counted *int64,
) iter.Seq2[*journal.Entry, error] {
	return func(yield func(*journal.Entry, error) bool) {
		head, err := a.Head(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		read := func(after int64, limit int) ([]journal.Entry, error) {
			page, err := a.Records(ctx, f, after, limit)
			return slices.DeleteFunc(page, func(r journal.Entry) bool { return r.Record > head.Record }), err
		}
		told := func(at int64) { progress.tell(at, head.Record, *counted) }
		each(ctx, 0, pageSize, read, numberOf, told)(yield)
	}
}

func numberOf(e *journal.Entry) int64 { return e.Record }

// each returns the items after a number, in order, which read returns in pages. After each page it calls told, which
// may be nil, with the last item's number.
func each[T any](
	ctx context.Context, after int64, size int, read func(after int64, limit int) ([]T, error), number func(*T) int64,
	told func(last int64),
) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for {
			page, err := read(after, size)
			if err = cmp.Or(err, ctx.Err()); err != nil {
				yield(nil, err)
				return
			}
			for i := range page {
				after = number(&page[i])
				if !yield(&page[i], nil) {
					return
				}
			}
			if len(page) == 0 {
				return
			}
			if told != nil {
				told(after)
			}
		}
	}
}

// columns are the table's columns in order; new ones go to the end. They are fields of a Record, and the events' times.
var columns = strings.Fields(`record kind timestamp tenant policy claimId submissionError errorClassification
	retryCount analysedRetryCount maxRetries shouldRetry backoffMinutes nextRetryTime retryReason executionTimeMs rule
	reason matchedRule outcome responsibleTeam deadLetterId attemptNumber revision episode jobKey elementInstanceKey
	processInstanceKey identity errorReceivedAt errorClassifiedAt retryCountCheckedAt backoffCalculatedAt
	retryDecidedAt nextAttemptScheduledAt body matchedText catalogue possiblyAccepted`)

// opensFormula matches where a spreadsheet may see the beginning of a formula: at the start of a cell, or after
// anything that a spreadsheet may take for a separator, also behind blanks and quotation marks.
var opensFormula = regexp.MustCompile(`(^|[;,\t|\r\n])([ "\x{a0}\x{feff}]*)([=+\-@＝＋－＠])`)

// Inert returns s with an apostrophe before anything that a spreadsheet may take for a formula. Texts from outside
// (errors, ids, names in a catalogue) may hold anything.
func Inert(s string) string {
	if s != "" && strings.IndexByte("\t\r\n", s[0]) >= 0 {
		s = "'" + s
	}
	return opensFormula.ReplaceAllString(s, "$1$2'$3")
}

// NewCSV returns a writer of RFC 4180 as Excel expects it in Brazil: with semicolons, and a byte order mark for UTF-8.
// A line "sep=;" would help Excel elsewhere, but make it ignore the byte order mark.
func NewCSV(w io.Writer) *csv.Writer {
	_, _ = io.WriteString(w, "\ufeff") // the next write returns the same error
	c := csv.NewWriter(w)
	c.Comma, c.UseCRLF = ';', true
	return c
}

// newTable writes a table's header to w and returns a function that writes a record as a row. Numbers have decimal
// commas, as Excel in Brazil groups thousands by points.
func newTable(w *bufio.Writer) func(*Record) error {
	to := NewCSV(w)
	_ = to.Write(columns)
	return func(r *Record) error {
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		from := json.NewDecoder(bytes.NewReader(text))
		from.UseNumber()
		values := map[string]any{}
		if err := from.Decode(&values); err != nil {
			return err
		}
		values["body"] = string(r.Body)
		if r.Analysis != nil {
			for _, e := range r.Events {
				values[eventNames[e.Number].column] = e.At
			}
		}
		row := make([]string, len(columns))
		for i, name := range columns {
			row[i] = cell(values[name])
		}
		return to.Write(row)
	}
}

func cell(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return Inert(v)
	case json.Number:
		return strings.Replace(v.String(), ".", ",", 1)
	default:
		return fmt.Sprint(v)
	}
}
