package journal_test

import (
	"fmt"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// aRun is a bulk run that a person with a CPF at hand starts.
func aRun(id string) journal.BulkRun {
	return journal.BulkRun{ID: id, Through: 7, BulkCommand: journal.BulkCommand{Action: journal.BulkRetry,
		Filter: journal.DeadLetterFilter{Team: "ti", Query: "CPF 529.982.247-25 expirada"}, Reason: "credencial de 529.982.247-25 corrigida", Force: true, PerMinute: 60}}
}

// bulk takes a step of the bulk run, and shows what is recorded of it and how the run is then.
func (s *stage) bulk(a *arguments) (string, error) {
	step := &journal.BulkStep{Verb: journal.BulkVerb(a.First), Run: journal.BulkRun{ID: "run"}, By: a.Named["by"]}
	if step.Verb == journal.BulkStart {
		action := journal.BulkRetry
		if a.Words["discard"] {
			action = journal.BulkDiscard
		}
		filter := journal.DeadLetterFilter{Team: decision.Team(a.Named["team"]), Query: a.Named["query"]}
		step.Run = journal.BulkRun{ID: "run", Through: a.Number("through"), BulkCommand: journal.BulkCommand{Action: action, Filter: filter,
			Reason: a.Named["reason"], Force: a.Words["force"], PerMinute: 60}}
		step.Items = testkit.Open(s.t, s.memory, filter, step.Run.Through)
	}
	told, before := "", len(s.memory.Entries())
	_, err := s.journal.Bulk(s.t.Context(), step)
	for _, e := range s.memory.Entries()[before:] {
		told += fmt.Sprintf("%s of %q: %s\n", e.Kind, e.Subject.ID, e.Told())
	}
	is, _ := s.run(a)
	return told + is, err
}

// run shows the bulk run, and what became of its dead letters.
func (s *stage) run(*arguments) (string, error) {
	r, _, err := s.memory.BulkRun(s.t.Context(), "run")
	if err != nil {
		return "", err
	}
	items, err := s.memory.BulkItems(s.t.Context(), "run", "", 0, 10)
	told := fmt.Sprintf("the run is %s, ended %s\n", r.State, clock(r.EndedAt))
	for i := range items {
		told += fmt.Sprintf("%s %s\n", items[i].Subject.ID, items[i].Outcome)
	}
	return told, err
}
