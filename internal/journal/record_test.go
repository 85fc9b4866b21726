package journal_test

import (
	"strings"
	"testing"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// What is kept is what was signed, whatever somebody made of it.
func TestKeepLosesNothing(t *testing.T) {
	const salt = "AbCdEfGhIjKlMn-_"
	for kept, want := range map[string]journal.Entry{
		`{"a":1,"salt":"` + salt + `"}`:            {Body: `{"a":1}`, Salt: salt},
		`{"a":{"salt":"x"},"salt":"` + salt + `"}`: {Body: `{"a":{"salt":"x"}}`, Salt: salt},
		`{"a":1}`:                       {Body: `{"a":1}`},
		`{"a":1,"salt":"short"}`:        {Body: `{"a":1,"salt":"short"}`},
		`{"salt":"` + salt + `","a":1}`: {Body: `{"salt":"` + salt + `","a":1}`},
		`{"a":1,"salt":"` + salt + `"`:  {Body: `{"a":1,"salt":"` + salt + `"`},
		`{"a":1,"salt":"` + salt:        {Body: `{"a":1,"salt":"` + salt},
		"":                              {},
	} {
		var e journal.Entry
		if e.Keep(kept); e != want || e.Kept() != kept {
			t.Errorf("%s: got %+v, kept as %s", kept, e, e.Kept())
		}
	}
}

// Every record has a salt of its own, whatever wrote it.
func TestRecordsAreSalted(t *testing.T) {
	f := testkit.New(t)
	f.Fail("tiss-submission", "CLM-1-1", "TIMEOUT", -1)
	f.Fail("tiss-submission", "CLM-2-1", "TIMEOUT", -1)
	f.Succeed("tiss-submission", "CLM-1-1")
	records, err := f.Memory.Records(t.Context(), journal.RecordFilter{}, 0, 9)
	testkit.Must(t, err)
	seen := map[string]bool{}
	for _, r := range records {
		e := r.Entry
		if r.Attempt != nil {
			e = new(journal.EntryOf(r.Subject, r.Attempt))
		}
		if seen[e.Salt] || !strings.HasSuffix(e.Kept(), `,"salt":"`+e.Salt+`"}`) || len(e.Salt) != 16 {
			t.Errorf("record %d is kept as %s", e.Record, e.Kept())
		}
		seen[e.Salt] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d records", len(seen))
	}
}
