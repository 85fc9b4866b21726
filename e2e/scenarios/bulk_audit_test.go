package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"retry-worker/e2e/harness"
	views "retry-worker/internal/api"
	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
	"retry-worker/internal/store"
	"retry-worker/internal/testkit"
)

// ledger is what the audit says, read beside the running worker as `audit verify` and `audit export` do.
type ledger struct {
	report  audit.Report
	steps   []string           // what was done with whole runs: "start by ana"
	reviews map[string]decided // the decisions, by the dead letter
	twice   []string           // dead letters on which there is more than one
}

// decided is what the audit has of a decision.
type decided struct{ Decision, DeadLetterID, Reason, By, BulkRun string }

// ledger verifies the audit and reads its decisions and the steps of a run.
func (s *bulkRuns) ledger(run string) ledger {
	s.t.Helper()
	reader, err := store.OpenReader(s.t.Context(), harness.Database(s.folder))
	testkit.Must(s.t, err)
	defer reader.Close()
	l := ledger{reviews: make(map[string]decided)}
	l.report, err = audit.Verify(context.Background(), reader, audit.VerifyOptions{}, func(_, _, _ int64) {})
	testkit.Must(s.t, err)
	var text bytes.Buffer
	_, err = audit.Export(context.Background(), reader, &text, audit.Selection{}, audit.JSONLines, func(_, _, _ int64) {})
	testkit.Must(s.t, err)
	for line := range bytes.Lines(text.Bytes()) {
		var r struct {
			Kind string
			Body json.RawMessage
		}
		testkit.Must(s.t, json.Unmarshal(line, &r))
		switch r.Kind {
		case "review":
			var body decided
			testkit.Must(s.t, json.Unmarshal(r.Body, &body))
			if _, seen := l.reviews[body.DeadLetterID]; seen {
				l.twice = append(l.twice, body.DeadLetterID)
			}
			l.reviews[body.DeadLetterID] = body
		case "bulk":
			var body struct{ Verb, By, BulkRun string }
			testkit.Must(s.t, json.Unmarshal(r.Body, &body))
			switch {
			case body.BulkRun != run || body.Verb == "gather" || body.Verb == "hold": // as often as it takes
			case body.By == "": // the worker itself
				l.steps = append(l.steps, body.Verb)
			default:
				l.steps = append(l.steps, body.Verb+" by "+body.By)
			}
		}
	}
	return l
}

// expectDecidedOnce holds that the audit has one decision on each item of a run that was decided, by whom it was started,
// and these steps of the run.
func (s *bulkRuns) expectDecidedOnce(id, by string, items []views.BulkItem, steps ...string) ledger {
	s.t.Helper()
	l := s.ledger(id)
	if len(l.twice) > 0 {
		s.t.Errorf("%d dead letters were decided on twice: %v", len(l.twice), l.twice[:min(len(l.twice), 5)])
	}
	wrong := 0
	for _, i := range items {
		r, recorded := l.reviews[i.DeadLetter]
		decided := i.Outcome != journal.BulkPlanned && i.Outcome != journal.BulkRefused
		if decided && (r.BulkRun != id || r.By != by) || !decided && recorded && r.BulkRun == id {
			wrong++
			s.t.Logf("item %d is %s, and the audit has %+v", i.Number, i.Outcome, r)
		}
	}
	if wrong > 0 {
		s.t.Errorf("%d items are not in the audit as they should be", wrong)
	}
	if !slices.Equal(l.steps, steps) {
		s.t.Errorf("the audit has the steps %v of the run, expected %v", l.steps, steps)
	}
	return l
}

func (l *ledger) String() string {
	return fmt.Sprintf("audit of %d records in %d links holds", l.report.Records, l.report.Links)
}
