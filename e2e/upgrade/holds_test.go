package upgrade

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/internal/audit"
	"retry-worker/internal/store"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
)

// counted holds that everything that is kept is what the records say.
func (s *fixture) counted() {
	s.t.Helper()
	s.verifies(harness.Binary(s.t))
}

// verifies has a version verify the audit, and returns what it says.
func (s *fixture) verifies(path string) string {
	s.t.Helper()
	return strings.TrimSpace(s.prints(path, "audit", "verify"))
}

// firstLine of what a program says.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// agree holds that both versions find the audit in order, and read out of it the same.
func (s *fixture) agree(claims ...string) string {
	s.t.Helper()
	said := s.verifies(harness.Binary(s.t))
	s.same("kpi", "-o", "json")
	for _, id := range claims {
		s.same("history", id, "-o", "json")
	}
	old, now := s.prints(harness.Binary(s.t), "audit", "export", "--format", "jsonl"), s.prints(harness.Binary(s.t), "audit", "export", "--format", "jsonl")
	if old != now || old == "" {
		s.t.Errorf("both versions export the audit, and differently: %d bytes and %d", len(old), len(now))
	}
	return said
}

// same holds that a command of both versions says the same, but for what this one adds.
func (s *fixture) same(args ...string) {
	s.t.Helper()
	var old, now any
	testkit.Must(s.t, json.Unmarshal([]byte(s.prints(harness.Binary(s.t), args...)), &old))
	testkit.Must(s.t, json.Unmarshal([]byte(s.prints(harness.Binary(s.t), args...)), &now))
	if !covers(now, old) {
		s.t.Errorf("%v: the version before says %v, this one %v", args, old, now)
	}
}

// covers tells whether everything that the version before says is said now.
func covers(now, old any) bool {
	switch old := old.(type) {
	case map[string]any:
		now, ok := now.(map[string]any)
		for name := range old {
			ok = ok && covers(now[name], old[name])
		}
		return ok
	case []any:
		now, ok := now.([]any)
		ok = ok && len(now) == len(old)
		for i := range old {
			ok = ok && covers(now[i], old[i])
		}
		return ok
	default:
		return reflect.DeepEqual(now, old)
	}
}

// record of the audit, as far as it is held against what the processes were told.
type record struct {
	Kind, ClaimID, NextRetryTime, DeadLetterID string
	ShouldRetry                                bool
	RetryCount, AnalysedRetryCount             int64
	JobKey                                     int64 `json:",string"`

	Body struct{ DeadLetterID, Delivery string }
}

// records of the audit, all of them.
func (s *fixture) records() (all []record) {
	s.t.Helper()
	reader, err := store.OpenReader(wait.Context(s.t), s.url)
	testkit.Must(s.t, err)
	defer reader.Close()
	var text bytes.Buffer
	_, err = audit.Export(wait.Context(s.t), reader, &text, audit.Selection{}, audit.JSONLines, func(_, _, _ int64) {})
	testkit.Must(s.t, err)
	for line := range bytes.Lines(text.Bytes()) {
		var r record
		testkit.Must(s.t, json.Unmarshal(line, &r))
		all = append(all, r)
	}
	return all
}

// held are what the journal and the processes agree on.
type held struct{ attempts, outcomes, shared int }

// hold compares what the processes were told with what the journal has: one attempt for each analysis that was asked for, one
// answer to it, whoever gave it and however often, and one outcome for each that was reported.
func (s *fixture) hold() (found held) {
	s.t.Helper()
	attempts, decided := map[int64][]record{}, map[string]int{}
	for _, r := range s.records() {
		switch r.Kind {
		case audit.AttemptKind:
			attempts[r.JobKey] = append(attempts[r.JobKey], r)
			found.attempts++
		case "outcome":
			found.outcomes++
		case "review":
			decided[r.Body.DeadLetterID]++
		case "delivery":
			if r.Body.Delivery == "nobody" { // nobody carries it out, so that somebody may decide anew
				decided[r.Body.DeadLetterID]--
			}
		}
	}
	h := s.processes
	h.mu.Lock()
	defer h.mu.Unlock()
	wanted := 0
	for _, a := range h.analyses {
		job, _ := h.Job(a.key)
		if answeredByBoth(&job) {
			found.shared++
		}
		if a.problem != unreadable {
			wanted++
		}
		s.holdAnalysis(a, &job, attempts[a.key])
	}
	if found.attempts != wanted || found.outcomes != h.outcomes {
		s.t.Errorf("the journal has %d attempts and %d outcomes, want %d and %d", found.attempts, found.outcomes, wanted, h.outcomes)
	}
	for id, n := range decided {
		if n > 1 {
			s.t.Errorf("the dead letter %s was decided on %d times", id, n)
		}
	}
	return found
}

func answeredByBoth(job *gateway.Record) bool {
	var by []string
	for _, a := range job.Answers {
		if !slices.Contains(by, a.Worker) {
			by = append(by, a.Worker)
		}
	}
	return slices.Contains(by, nameBefore) && slices.Contains(by, nameAfter)
}

func (s *fixture) holdAnalysis(a analysis, job *gateway.Record, attempts []record) {
	s.t.Helper()
	settling, said := 0, map[gateway.Method]string{}
	for _, answer := range job.Answers {
		if answer.Settled {
			settling++
		}
		text := answer.ErrorCode + answer.Message + answer.Variables
		if was, known := said[answer.Method]; known && was != text && answer.Method != gateway.FailJob {
			s.t.Errorf("the job %d of %s was answered differently: %s and %s", a.key, a.claim, was, text)
		}
		said[answer.Method] = text
	}
	if settling != 1 {
		s.t.Errorf("the job %d of %s is %v and was settled by %d answers, want one", a.key, a.claim, job.State, settling)
	}
	if a.problem == unreadable {
		if len(attempts) != 0 || job.State != gateway.Incident {
			s.t.Errorf("the job %d of %s, which cannot be read, is %v with %d attempts", a.key, a.claim, job.State, len(attempts))
		}
		return
	}
	if len(attempts) != 1 {
		s.t.Errorf("the job %d of %s has %d attempts, want one", a.key, a.claim, len(attempts))
		return
	}
	r, told := attempts[0], settled(job)
	if told.ShouldRetry != r.ShouldRetry || told.RetryCount != r.RetryCount || told.NextRetryTime != r.NextRetryTime || told.DeadLetterID != r.DeadLetterID ||
		r.AnalysedRetryCount != a.count || r.ClaimID != a.claim || r.ShouldRetry != (a.problem == passing) {
		s.t.Errorf("the job %d of %s: the process was told %+v, the journal has %+v", a.key, a.claim, told, r)
	}
}

// shows holds that a program shows every dead letter that the processes got, each in its state, and its pages too.
func (p *program) shows() {
	p.s.t.Helper()
	letters := p.letters()
	h := p.s.processes
	h.mu.Lock()
	known := map[string]string{}
	for _, c := range h.claims {
		for i, id := range c.letters {
			state := "superseded"
			if i == len(c.letters)-1 {
				state = map[string]string{"": "open", "cancelled": "open", "discarded": "discarded", "recovered": "recovered"}[c.end]
			}
			known[id] = state
		}
	}
	h.mu.Unlock()
	if len(letters) != len(known) {
		p.s.t.Errorf("%s shows %d dead letters, want %d", p.name, len(letters), len(known))
	}
	for id, want := range known {
		if got := letters[id]; got.State != want {
			p.s.t.Errorf("%s shows the dead letter %s of %s as %q (%s), want %q", p.name, id, got.Subject.ID, got.State, got.Delivery, want)
		}
	}
	for _, page := range []string{"/", "/dead-letters", "/dead-letters?state=all"} {
		if err := p.ask(page, nil, nil); err != nil {
			p.s.t.Error(err)
		}
	}
}

// TestCovers: what is said now holds what was said before.
func TestCovers(t *testing.T) {
	for _, c := range []struct {
		now, old string
		want     bool
	}{
		{`{"a":1,"b":2}`, `{"a":1}`, true}, {`{"a":1}`, `{"a":1,"b":2}`, false}, {`{"a":[{"x":1,"y":2}]}`, `{"a":[{"x":1}]}`, true},
		{`[1,2]`, `[1]`, false}, {`[{"a":2}]`, `[{"a":1}]`, false}, {`1`, `{"a":1}`, false}, {`{}`, `[1]`, false},
	} {
		var now, old any
		testkit.Must(t, json.Unmarshal([]byte(c.now), &now))
		testkit.Must(t, json.Unmarshal([]byte(c.old), &old))
		if got := covers(now, old); got != c.want {
			t.Errorf("%s in %s: %v", c.old, c.now, got)
		}
	}
}
