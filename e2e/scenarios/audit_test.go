package scenarios

import (
	"bytes"
	"context"
	"encoding/json"

	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
	"retry-worker/internal/store"
	"retry-worker/internal/testkit"
)

// exported is a record of the audit.
type exported struct {
	Kind string
	Body json.RawMessage
}

// audited verifies the audit, beside the running worker as `audit verify` does, and returns what it holds.
func (s *world) audited() (report audit.Report, records []exported) {
	s.t.Helper()
	reader, err := store.OpenReader(s.t.Context(), s.database())
	testkit.Must(s.t, err)
	defer reader.Close()
	report, err = audit.Verify(context.Background(), reader, journal.Head{}, func(_, _, _ int64) {})
	testkit.Must(s.t, err)
	var text bytes.Buffer
	_, err = audit.Export(context.Background(), reader, &text, audit.Selection{}, audit.JSONLines, func(_, _, _ int64) {})
	testkit.Must(s.t, err)
	for line := range bytes.Lines(text.Bytes()) {
		var r exported
		testkit.Must(s.t, json.Unmarshal(line, &r))
		records = append(records, r)
	}
	return report, records
}
