package journal_test

import (
	"regexp"
	"strings"
	"testing"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// Every record has a salt of its own, whatever wrote it, which people are not told.
func TestRecordsAreSalted(t *testing.T) {
	f := testkit.New(t)
	f.Fail("tiss-submission", "CLM-1-1", "TIMEOUT", -1)
	f.Fail("tiss-submission", "CLM-2-1", "TIMEOUT", -1)
	f.Succeed("tiss-submission", "CLM-1-1")
	seen := map[string]bool{}
	testkit.Must(t, f.Memory.Moment(t.Context(), func(m journal.Moment) error {
		records, err := m.Entries(0, 9)
		for i := range records {
			e := &records[i]
			salt := regexp.MustCompile(`,"salt":"[A-Za-z0-9_-]{16}"}$`).FindString(e.Body)
			if salt == "" || seen[salt] || string(e.Told()) != strings.TrimSuffix(e.Body, salt)+"}" {
				t.Errorf("record %d is kept as %s, and told as %s", e.Record, e.Body, e.Told())
			}
			seen[salt] = true
		}
		return err
	}))
	if len(seen) != 3 {
		t.Errorf("%d records", len(seen))
	}
}
