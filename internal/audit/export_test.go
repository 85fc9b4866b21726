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
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// told is a journal with a record of every kind: retries, a limit, a permanent error, a rejection, outcomes, a review and its
// delivery, and a purge, with texts that are hard to write.
func told(t *testing.T) *testkit.Memory {
	t.Helper()
	store := testkit.NewMemory()
	w := write(t, store)
	w.fails("CLM-000-1", "TIMEOUT", -1) // to be purged
	w.pass(240 * time.Hour)
	w.fails("CLM-001-1", "TIMEOUT", -1)
	w.pass(time.Hour)
	w.fails("CLM-001-1", `=HYPERLINK("http://x","y"), "quoted", and <é>`+"\nsecond line", 1)
	w.pass(time.Hour)
	w.succeeds("CLM-001-1")
	w.fails("CLM-+1+1-2", "DUPLICATE_CLAIM", 0)
	w.fails("CLM-003-1", "what is this", 5)
	w.rejects()
	dead, _, err := store.Story(t.Context(), subject("CLM-003-1"))
	testkit.Must(t, err)
	letter := dead.DeadLetters[0].ID
	if _, err := w.ReviewSeen(t.Context(), &journal.ReviewJob{Subject: subject("CLM-003-1"), DeadLetter: letter, JobKey: 2251799813685777}); err != nil {
		t.Fatal(err)
	}
	_, err = w.Review(t.Context(), &journal.Review{
		Subject: subject("CLM-003-1"), DeadLetter: letter, Force: true, Delay: 2 * time.Hour, Reason: "portal is up again", By: "ana",
	})
	testkit.Must(t, err)
	w.answers(store)
	if n, err := w.Purge(t.Context(), store, 47*time.Hour, true); err != nil || n != 1 {
		t.Fatalf("%d purged, %v", n, err)
	}
	return store
}

// answers has the process take the only answer to a review.
func (w *writer) answers(store *testkit.Memory) {
	w.t.Helper()
	waiting := store.Outbox()
	if len(waiting) != 1 {
		w.t.Fatalf("%d answers are on their way, want 1", len(waiting))
	}
	a, err := journal.ReadAnswer(&waiting[0])
	if err == nil {
		err = w.Delivered(w.t.Context(), a, true)
	}
	testkit.Must(w.t, err)
}

func export(t *testing.T, a journal.Archive, s audit.Selection, f audit.Format) (string, int64) {
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

// Both formats say the same of each record.
func TestExportsAgree(t *testing.T) {
	store := told(t)
	lines, _ := export(t, store, audit.Selection{}, audit.JSONLines)
	text, _ := export(t, store, audit.Selection{}, audit.CSV)
	rows := cells(t, text)
	header := rows[0]
	n := 0
	for line := range strings.Lines(lines) {
		n++
		var r map[string]any
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		for i, name := range header {
			if name == "body" || strings.HasSuffix(name, "At") {
				continue // written otherwise
			}
			want := ""
			if r[name] != nil {
				want = fmt.Sprint(r[name])
			}
			got := strings.ReplaceAll(rows[n][i], "'", "")
			if name == "executionTimeMs" {
				got = strings.Replace(got, ",", ".", 1)
			}
			if got != want {
				t.Errorf("record %s: %s is %q in CSV, %q in JSON", rows[n][0], name, got, want)
			}
		}
	}
	if n != len(rows)-1 {
		t.Errorf("%d lines, %d rows", n, len(rows)-1)
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
	store := testkit.NewMemory()
	w := write(t, store)
	const many = 2500
	for i := range many {
		w.fails(fmt.Sprintf("CLM-1-%d", i+1), "TIMEOUT", -1)
	}
	var seen []int64
	n, err := audit.Export(t.Context(), store, io.Discard, audit.Selection{}, audit.CSV, func(at, of, counted int64) {
		if of != many || at != counted {
			t.Errorf("record %d of %d, %d written", at, of, counted)
		}
		seen = append(seen, at)
	})
	if err != nil || n != many || fmt.Sprint(seen) != "[1000 2000 2500]" {
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
	store := testkit.NewMemory()
	w := write(t, store)
	for i := range 400 {
		w.fails(fmt.Sprintf("CLM-1-%d", i+1), "TIMEOUT", -1)
	}
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
		l := &edited{Memory: filled(t, "what is this"), edit: func(r *journal.Record) {
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
	l := &edited{Memory: filled(t, "what is this"), edit: func(r *journal.Record) {
		if r.Entry != nil && r.Entry.Record == 10 {
			r.Entry.Body = `{"outcome":`
		}
	}}
	text, n := export(t, l, audit.Selection{}, audit.JSONLines)
	if n != 12 || !strings.Contains(text, `"body":"{\"outcome\":"`) {
		t.Errorf("%d records:\n%s", n, text)
	}
}
