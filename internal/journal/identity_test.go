package journal_test

import (
	"testing"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

var key = journal.IdentityKey{1}

// asked is an analysis as it came; change says in what it differs.
func asked(change func(a *journal.Analysis, v *decision.Variables)) journal.Identity {
	a := &journal.Analysis{Subject: someSubject, JobKey: 1, ElementInstanceKey: 2, ProcessInstanceKey: 3}
	v := decision.Variables{ID: `"CLM-1-1"`, Error: `"TIMEOUT"`, RetryCount: "2", LastSubmissionTime: `"2025-01-12T10:00:00Z"`}
	change(a, &v)
	f, _ := tiss.Read(v)
	a.Failure = &f
	return key.Identity(a)
}

func TestIdentityIsJobSubjectAndInputs(t *testing.T) {
	same := asked(func(*journal.Analysis, *decision.Variables) {})
	if again := asked(func(*journal.Analysis, *decision.Variables) {}); again != same || len(same.String()) != 32 {
		t.Fatalf("the same is %s, then %s", same, again)
	}
	seen := map[journal.Identity]string{same: "nothing"}
	for name, change := range map[string]func(a *journal.Analysis, v *decision.Variables){
		"job":                 func(a *journal.Analysis, _ *decision.Variables) { a.JobKey++ },
		"element instance":    func(a *journal.Analysis, _ *decision.Variables) { a.ElementInstanceKey++ },
		"process instance":    func(a *journal.Analysis, _ *decision.Variables) { a.ProcessInstanceKey++ },
		"tenant":              func(a *journal.Analysis, _ *decision.Variables) { a.Subject.Tenant = "b" },
		"policy":              func(a *journal.Analysis, _ *decision.Variables) { a.Subject.Policy = "b" },
		"id":                  func(a *journal.Analysis, v *decision.Variables) { a.Subject.ID, v.ID = "CLM-2-1", `"CLM-2-1"` },
		"error":               func(_ *journal.Analysis, v *decision.Variables) { v.Error = `"SERVER_ERROR"` },
		"retryCount":          func(_ *journal.Analysis, v *decision.Variables) { v.RetryCount = "3" },
		"absent retryCount":   func(_ *journal.Analysis, v *decision.Variables) { v.RetryCount = "" },
		"retryCount as 2.0":   func(_ *journal.Analysis, v *decision.Variables) { v.RetryCount = "2.0" },
		"lastSubmissionTime":  func(_ *journal.Analysis, v *decision.Variables) { v.LastSubmissionTime = `"2025-01-12T10:00:01Z"` },
		"what is redacted":    func(_ *journal.Analysis, v *decision.Variables) { v.Error = `"TIMEOUT CPF 111.444.777-35"` },
		"what is redacted 2":  func(_ *journal.Analysis, v *decision.Variables) { v.Error = `"TIMEOUT CPF 123.456.789-09"` },
		"error and its place": func(_ *journal.Analysis, v *decision.Variables) { v.LastSubmissionTime, v.Error = `"TIMEOUT"`, "" },
	} {
		i := asked(change)
		if other, known := seen[i]; known {
			t.Errorf("a change of %s is told as one of %s", name, other)
		}
		seen[i] = name
	}
	if redacted := asked(func(a *journal.Analysis, _ *decision.Variables) { a.Error = "[redacted]" }); redacted != same {
		t.Error("another redaction changes the identity")
	}
	was := key
	key = journal.NewIdentityKey()
	if asked(func(*journal.Analysis, *decision.Variables) {}) == same {
		t.Error("the key does not change the identity")
	}
	key = was
}
