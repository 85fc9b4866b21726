package audit_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/audit"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// told is a journal with a record of every kind: retries, a limit, a permanent error, a rejection, outcomes, a review and its
// delivery, and a purge, with texts that are hard to write.
func told(t *testing.T) *testkit.Memory {
	t.Helper()
	w := write(t)
	w.rejects() // to be purged
	w.Advance(240 * time.Hour)
	w.fails("CLM-001-1", "TIMEOUT", -1)
	w.Advance(time.Hour)
	w.fails("CLM-001-1", `=HYPERLINK("http://x","y"), "quoted", and <é>`+"\nsecond line", 1)
	w.Advance(time.Hour)
	w.succeeds("CLM-001-1")
	w.fails("CLM-+1+1-2", "DUPLICATE_CLAIM", 0)
	w.fails("CLM-003-1", "what is this", 5)
	w.rejects()
	items, _, err := w.DeadLetters.List(t.Context(), journal.DeadLetterFilter{Query: "CLM-003-1"}, "", 1)
	testkit.Must(t, err)
	w.Await(items[0].ID)
	_, err = w.DeadLetters.Decide(t.Context(), deadletter.Command{Action: journal.BulkRetry, ID: items[0].ID, RetryOptions: journal.RetryOptions{Force: true}, Reason: "portal is up again", By: "ana"})
	testkit.Must(t, err)
	w.Deliver(true)
	if n, err := w.Journal.Purge(t.Context(), w.Memory, 47*time.Hour, true); err != nil || n != 1 {
		t.Fatalf("%d purged, %v", n, err)
	}
	return w.Memory
}

func export(t *testing.T, a journal.Reader, s audit.Selection, f audit.Format) (string, int64) {
	t.Helper()
	var b bytes.Buffer
	n, err := audit.Export(t.Context(), a, &b, s, f, nil)
	testkit.Must(t, err)
	return b.String(), n
}

func TestExport(t *testing.T) {
	store := told(t)
	for _, f := range audit.Formats() {
		text, n := export(t, store, audit.Selection{}, f)
		if n != 10 {
			t.Errorf("%s: %d records, want 10", f, n)
		}
		golden.Check(t, "testdata/export."+string(f), text)
	}
}

func TestExportSelects(t *testing.T) {
	store := told(t)
	from := begin.Add(240 * time.Hour).Truncate(time.Second)
	for name, tt := range map[string]struct {
		s    audit.Selection
		want string
	}{
		"a claim":             {audit.Selection{RecordFilter: journal.RecordFilter{Subject: subject("CLM-001-1")}}, "2 3 4"},
		"nobody":              {audit.Selection{RecordFilter: journal.RecordFilter{Subject: subject("CLM-001-9")}}, ""},
		"a period":            {audit.Selection{RecordFilter: journal.RecordFilter{Since: from.Add(time.Minute), Until: from.Add(90 * time.Minute)}}, "3"},
		"since":               {audit.Selection{RecordFilter: journal.RecordFilter{Since: from.Add(90 * time.Minute)}}, "4 5 6 7 8 9 10 11"},
		"until, not included": {audit.Selection{RecordFilter: journal.RecordFilter{Until: from.Add(time.Hour)}}, "2"},
		"a claim in a period": {audit.Selection{RecordFilter: journal.RecordFilter{Subject: subject("CLM-001-1"), Since: from.Add(time.Minute)}}, "3 4"},
		"a policy":            {audit.Selection{Policy: decision.DefaultPolicy}, "2 3 4 5 6 8 9 10"},
		"another policy":      {audit.Selection{Policy: "other"}, ""},
		"a tenant":            {audit.Selection{Tenant: journal.DefaultTenant}, "2 3 4 5 6 7 8 9 10"},
	} {
		text, n := export(t, store, tt.s, audit.JSONLines)
		var records []string
		for line := range strings.Lines(text) {
			var r audit.Record
			testkit.Must(t, json.Unmarshal([]byte(line), &r))
			records = append(records, fmt.Sprint(r.Record))
		}
		if got := strings.Join(records, " "); got != tt.want || n != int64(len(records)) {
			t.Errorf("%s: got records %q, %d said, want %q", name, got, n, tt.want)
		}
	}
}

// What a worker writes meanwhile is not waited for: an export ends.
func TestExportEndsAtTheHead(t *testing.T) {
	l := &edited{Memory: filled(t, "what is this"), last: 9}
	if text, n := export(t, l, audit.Selection{}, audit.JSONLines); n != 9 || strings.Count(text, "\n") != 9 {
		t.Errorf("%d records of 9", n)
	}
}

func TestExportOfManyPages(t *testing.T) {
	const many = 2500
	w := write(t)
	w.fail(many)
	var seen []int64
	n, err := audit.Export(t.Context(), w.Memory, io.Discard, audit.Selection{}, audit.CSV, func(at, of, counted int64) {
		if of != many || at != counted {
			t.Errorf("record %d of %d, %d written", at, of, counted)
		}
		seen = append(seen, at)
	})
	if err != nil || n != many || fmt.Sprint(seen) != "[500 1000 1500 2000 2500]" {
		t.Errorf("%d written, %v, told %v", n, err, seen)
	}
}

// full takes some bytes and then no more.
type full struct{ left int }

var errFull = errors.New("no space left")

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestExportFails(t *testing.T) {
	w := write(t)
	w.fail(400)
	store := w.Memory
	for _, f := range audit.Formats() {
		for _, left := range []int{0, 100_000} {
			if _, err := audit.Export(t.Context(), store, &full{left}, audit.Selection{}, f, nil); !errors.Is(err, errFull) {
				t.Errorf("%s with room for %d bytes: got %v", f, left, err)
			}
		}
	}
	if _, err := audit.Export(t.Context(), store, io.Discard, audit.Selection{}, "xml", nil); err == nil {
		t.Error("a format that does not exist was written")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := audit.Export(ctx, store, io.Discard, audit.Selection{}, audit.CSV, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	store.SetDown(true)
	if _, err := audit.Export(t.Context(), store, io.Discard, audit.Selection{}, audit.CSV, nil); err == nil {
		t.Error("it was written without a journal")
	}
}

// A spreadsheet runs what begins like a formula; RFC 4180 says how the rest is quoted.
func TestCSVIsInert(t *testing.T) {
	for text, want := range map[string]string{
		"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\tx": "'\tx", "  =1": "  '=1", "\u00a0=1": "\u00a0'=1",
		"＝1": "'＝1", "a=1": "a=1", "HTTP 503": "HTTP 503", "": "", "'=1": "'=1", "a,b": "a,b", `a"b`: `a"b`, "a\nb": "a\nb",
		"INSURANCE_EXPIRED;=cmd|' /C calc'!A0": "INSURANCE_EXPIRED;'=cmd|' /C calc'!A0", `a, "=1"`: `a, "'=1"`, `a,"";@x`: `a,"";'@x`,
		"a|-1\n+2": "a|'-1\n'+2", "não\t＋1": "não\t'＋1", ";;-1": ";;'-1", "a - b": "a - b",
	} {
		l := &edited{Memory: filled(t, "what is this"), edit: func(r *journal.Entry) {
			if r.Attempt != nil && r.Attempt.Record == 1 {
				r.Attempt.Error = text
			}
		}}
		csvText, _ := export(t, l, audit.Selection{}, audit.CSV)
		rows := cells(t, csvText)
		if got := rows[1][6]; rows[0][6] != "submissionError" || got != want {
			t.Errorf("%q is written as %q, want %q", text, got, want)
		}
		for _, separator := range ";,\t|" {
			for _, cell := range spreadsheet(csvText, separator) {
				if begin := strings.TrimLeft(cell, " \u00a0\ufeff"); strings.IndexAny(begin, "=+-@\t＝＋－＠") == 0 {
					t.Errorf("%q: read with %q a cell is %q", text, separator, cell)
				}
			}
		}
	}
	empty, n := export(t, testkit.NewMemory(), audit.Selection{}, audit.CSV)
	if n != 0 || !strings.HasPrefix(empty, "\ufeffrecord;kind;timestamp;") || strings.Count(empty, "\r\n") != 1 {
		t.Errorf("nothing is written as %q", empty)
	}
}

// cells of an export as Excel shows them in Brazil: the separator there is a semicolon, and the byte order mark tells the
// encoding.
func cells(t *testing.T, text string) [][]string {
	t.Helper()
	text, marked := strings.CutPrefix(text, "\ufeff")
	from := csv.NewReader(strings.NewReader(text))
	from.Comma = ';'
	rows, err := from.ReadAll()
	if err != nil || !marked {
		t.Fatalf("marked as UTF-8: %t; %v", marked, err)
	}
	return rows
}

// spreadsheet is all cells of a text as Excel finds them where such a separator is set: a quotation mark quotes at the
// beginning of a cell, and is a character like another anywhere else.
func spreadsheet(text string, separator rune) (cells []string) {
	cell, quoted, begins := "", false, true
	for _, r := range strings.TrimPrefix(text, "\ufeff") {
		switch {
		case r == '"' && (quoted || begins):
			quoted, begins = !quoted, false
		case !quoted && (r == separator || r == '\r' || r == '\n'):
			cells, cell, begins = append(cells, cell), "", true
		default:
			cell, begins = cell+string(r), false
		}
	}
	return append(cells, cell)
}

// An entry that somebody made no JSON is shown all the same.
func TestExportOfABrokenEntry(t *testing.T) {
	l := &edited{Memory: filled(t, "what is this"), edit: func(r *journal.Entry) {
		if r.Record == 10 {
			r.Body = `{"outcome":`
		}
	}}
	text, n := export(t, l, audit.Selection{}, audit.JSONLines)
	if n != 12 || !strings.Contains(text, `"body":"{\"outcome\":"`) {
		t.Errorf("%d records:\n%s", n, text)
	}
}
