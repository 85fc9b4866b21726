package bpmn_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Variables that a BPMN error carries are lost unless its boundary event maps them.
func TestBoundaryEventsMapWhatTheErrorCarries(t *testing.T) {
	eachWanted(t, func(t *testing.T, d document, want expectation) {
		carried := map[string][]string{want.failure: want.carries, "MAX_RETRIES_EXCEEDED": onError, "PERMANENT_ERROR": onError}
		if want.gated {
			carried["MAX_RETRIES_EXCEEDED at submission_gate"] = onError
			carried["CHECK_FAILED"] = nil
		}
		for _, n := range d.Process.Elements {
			if !n.is("boundaryEvent") {
				continue
			}
			code := d.code(n.Error.Ref)
			if n.AttachedTo == "submission_gate" {
				code += " at submission_gate"
			}
			variables, known := carried[code]
			if !known {
				t.Errorf("boundary event %s catches %q, expected one of %v, each once", n.ID, code, slices.Sorted(maps.Keys(carried)))
			}
			delete(carried, code)
			for _, variable := range variables {
				if got := sourceOf(n.Extensions.Outputs, variable); got != "="+variable {
					t.Errorf("boundary event %s (%s) maps %s from %q, expected =%[3]s", n.ID, code, variable, got)
				}
			}
			if got := len(n.Extensions.Outputs); known && got != len(variables) {
				t.Errorf("boundary event %s (%s) maps %d variables, expected %v only", n.ID, code, got, variables)
			}
		}
		for code := range carried {
			t.Errorf("no boundary event catches %s", code)
		}
	})
}

// An optional variable that a failure does not carry would be found in the process as the failure before left it.
func TestNothingOfOneFailureIsLeftAtTheNext(t *testing.T) {
	eachWanted(t, func(t *testing.T, d document, want expectation) {
		wait := d.node("wait_for_retry")
		for _, variable := range append(want.forgets, want.carries...) {
			if got := sourceOf(wait.Extensions.Outputs, variable); got != "=null" {
				t.Errorf("when the wait ends %s becomes %q, expected =null", variable, got)
			}
		}
	})
}

// The wait goes by the absolute time, or by the engine's own clock; the review must bring what it goes by anew, or
// the process waits as it did before, or not at all.
func TestTheWaitGoesByWhatWasDecided(t *testing.T) {
	eachWanted(t, func(t *testing.T, d document, want expectation) {
		if got := d.node("wait_for_retry").Timer; got.Date != want.date || got.Duration != want.duration {
			t.Errorf("the wait goes by the date %q, the duration %q; expected %q, %q", got.Date, got.Duration, want.date, want.duration)
		}
		review := d.node("retry_review")
		decided := strings.TrimPrefix(want.date+want.duration, "=")
		if in, out := sourceOf(review.Extensions.Inputs, decided), sourceOf(review.Extensions.Outputs, decided); in != "=null" || out != "="+decided {
			t.Errorf("the review begins with %s %q and ends with %q, expected =null and =%[1]s", decided, in, out)
		}
	})
}

func TestTasksAreTheContracts(t *testing.T) {
	eachWanted(t, func(t *testing.T, d document, want expectation) {
		left := append([]hospitalTask{{"record-retry-outcome", "3"}, {"analyze-retry", "3"}, {"retry-review", "3"}}, want.tasks...)
		if want.gated {
			left = append(left, hospitalTask{"submission-gate", "3"}, hospitalTask{"check-submission", "3"},
				hospitalTask{"record-retry-outcome", "3"})
		}
		for _, n := range d.Process.Elements {
			task := hospitalTask{n.Extensions.Task.Type, n.Extensions.Task.Retries}
			if task == (hospitalTask{}) {
				continue
			}
			at := slices.Index(left, task)
			if at < 0 {
				t.Errorf("task %s is %+v, expected one of %v, each once", n.ID, task, left)
				continue
			}
			left = slices.Delete(left, at, at+1)
			policy := ""
			if !slices.Contains(want.tasks, task) && task.jobType != "check-submission" {
				policy = want.policy
			}
			if got := n.header("retryPolicy"); got != policy {
				t.Errorf("task %s names the policy %q, expected %q", n.ID, got, policy)
			}
		}
		if len(left) > 0 {
			t.Errorf("no task for %v", left)
		}
	})
}

// A task that reads retryCount through an input mapping keeps its new value to itself unless it maps
// it back, and the process would retry for ever.
func TestRetryCountLeavesEveryTaskThatMapsIt(t *testing.T) {
	each(t, func(t *testing.T, d document) {
		for _, n := range d.Process.Elements {
			mapped := sourceOf(n.Extensions.Inputs, "retryCount") != ""
			if counts := slices.Contains([]string{"analyze-retry", "retry-submission-backoff"}, n.Extensions.Task.Type); !mapped && !counts {
				continue
			}
			if got := sourceOf(n.Extensions.Outputs, "retryCount"); got != "=retryCount" {
				t.Errorf("task %s maps its new retryCount to the process from %q, expected =retryCount", n.ID, got)
			}
		}
	})
}

func TestStaffCanReadTheModel(t *testing.T) {
	eachWanted(t, func(t *testing.T, d document, want expectation) {
		if strings.TrimSpace(d.Process.Documentation) == "" {
			t.Error("the process has no documentation")
		}
		start := d.start()
		if !strings.Contains(start.Documentation, want.id) || !strings.Contains(d.Process.Documentation, want.id) {
			t.Errorf("neither the process nor its start may leave out that %s is needed", want.id)
		}
		for _, n := range d.Process.Elements {
			event := strings.HasSuffix(n.XMLName.Local, "Event")
			task := strings.HasSuffix(n.XMLName.Local, "Task")
			gateway := strings.HasSuffix(n.XMLName.Local, "Gateway")
			if (event || task || gateway) && strings.TrimSpace(n.Documentation) == "" {
				t.Errorf("%s %s has no documentation", n.XMLName.Local, n.ID)
			}
			if (event || task) && n.Name == "" {
				t.Errorf("%s %s has no name", n.XMLName.Local, n.ID)
			}
		}
	})
}
