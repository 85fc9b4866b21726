package audit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// filled is a journal of 12 records in as many links: 1…8 failures of claims, 9 a rejection, 10 an outcome, 11 and 12
// failures, the last with that text.
func filled(t testing.TB, last string) *testkit.Memory {
	t.Helper()
	w := cut(t)
	w.rejects()
	w.succeeds("CLM-1-1")
	w.fails("CLM-1-2", "DUPLICATE_CLAIM", 1)
	w.fails("CLM-2-1", last, 0)
	return w.Memory
}

func verify(t testing.TB, j audit.Journal, head journal.Head) (audit.Report, error) {
	t.Helper()
	return audit.Verify(t.Context(), j, head, nil)
}

func TestVerify(t *testing.T) {
	m := filled(t, "what is this")
	links := m.Ledger()
	for name, head := range map[string]journal.Head{
		"alone": {}, "with its head": {Link: 12, Hash: links[11].Hash}, "with an earlier head": {Link: 5, Hash: links[4].Hash},
	} {
		report, err := verify(t, m, head)
		want := audit.Report{Links: 12, Records: 12, Head: journal.Head{Link: 12, Hash: links[11].Hash}}
		if err != nil || report != want {
			t.Errorf("%s: got %+v, %v, want %+v", name, report, err, want)
		}
	}
	key := m.IdentityKey()
	if report, err := verify(t, testkit.NewMemory(), journal.Head{}); err != nil || report != (audit.Report{Head: key.Start()}) {
		t.Errorf("of nothing: got %+v, %v", report, err)
	}
}

// Who changes everything consistently is found by a head that was kept elsewhere, and by that only.
func TestVerifyAgainstAKeptHead(t *testing.T) {
	whole := filled(t, "what is this")
	links := whole.Ledger()
	for name, tt := range map[string]struct {
		of   *testkit.Memory
		kept journal.Link
		link int64
		says string
	}{
		"a cut tail":         {cut(t).Memory, links[11], 9, "its tail was cut off"},
		"all cut":            {testkit.NewMemory(), links[11], 1, "its tail was cut off"},
		"written anew":       {filled(t, "TIMEOUT"), links[11], 12, "rewritten"},
		"by an earlier head": {whole, links[10], 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := verify(t, tt.of, journal.Head{}); err != nil {
				t.Errorf("it shows without a kept head: %v", err)
			}
			_, err := verify(t, tt.of, journal.Head{Link: tt.kept.Number, Hash: tt.kept.Hash})
			if tt.link == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			b, ok := errors.AsType[*journal.Broken](err)
			if !ok || b.What != "link" || b.Number != tt.link || !strings.Contains(b.Problem, tt.says) {
				t.Errorf("got %v, want link %d: %s", err, tt.link, tt.says)
			}
		})
	}
}

// cut is a journal of the first 8 records of filled.
func cut(t testing.TB) *writer {
	t.Helper()
	w := write(t)
	w.fail(8)
	return w
}

func TestVerifyAfterAPurge(t *testing.T) {
	w := write(t)
	w.fail(6)
	for i := range 6 {
		w.succeeds(fmt.Sprintf("CLM-1-%d", i+1))
	}
	w.Advance(20 * time.Hour)
	for i := range 6 { // the first three of them come again
		w.fails(fmt.Sprintf("CLM-1-%d", i+4), "DUPLICATE_CLAIM", -1)
	}
	for range 2 {
		_, err := w.Journal.Purge(t.Context(), w.Memory, time.Hour, false)
		report, broken := verify(t, w.Memory, journal.Head{})
		if err != nil || broken != nil || report.Expunged != 12 || report.Records != 7 || report.Links != 19 {
			t.Errorf("got %+v, %v, %v, want 12 purged, 7 records, 19 links", report, err, broken)
		}
	}
	w.succeeds("CLM-1-4")
	if report, err := verify(t, w.Memory, journal.Head{}); err != nil || report.Records != 8 {
		t.Errorf("with a record behind the purge: got %+v, %v", report, err)
	}
}

func TestVerifyIsTold(t *testing.T) {
	m := filled(t, "TIMEOUT")
	var last, of, held int64
	_, err := audit.Verify(t.Context(), m, journal.Head{}, func(at, all, counted int64) { last, of, held = at, all, counted })
	if err != nil || last != 12 || of != 12 || held != 12 {
		t.Errorf("got %d of %d, %d hold, %v", last, of, held, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := audit.Verify(ctx, m, journal.Head{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}

// What cannot be read at all is no broken record.
func TestVerifyUnavailable(t *testing.T) {
	store := cut(t).Memory
	store.SetDown(true)
	_, err := verify(t, store, journal.Head{})
	if _, broken := errors.AsType[*journal.Broken](err); err == nil || broken {
		t.Errorf("got %v", err)
	}
}

func TestMark(t *testing.T) {
	m := journal.Head{Link: 12, Hash: journal.Digest{0xab, 31: 0xcd}}
	if got, err := journal.ParseHead(" " + m.String() + "\n"); err != nil || got != m {
		t.Errorf("got %v, %v, want %v", got, err, m)
	}
	for _, s := range []string{"", "12", "12:", "0:" + m.Hash.String(), "-1:" + m.Hash.String(), m.String() + "00", m.String()[:60], "x:" + m.Hash.String(), "12:" + strings.Repeat("z", 64)} {
		if got, err := journal.ParseHead(s); err == nil || got != (journal.Head{}) {
			t.Errorf("%q: got %v, %v, want an error", s, got, err)
		}
	}
}
