package journal_test

import (
	"context"

	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// verifyLedger holds the ledger, and everything that is derived from records, against the records.
func verifyLedger(m *testkit.Memory) error {
	_, err := audit.Verify(context.Background(), m, journal.Head{}, nil)
	return err
}
