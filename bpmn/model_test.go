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

// A retry after a review may begin to count anew: retryCount is 0 then. Of what a gate sent ahead the success is wanted, too.
func TestASuccessCountsAsRetriedAfterARetryOrAReview(t *testing.T) {
	eachWanted(t, func(t *testing.T, d document, want expectation) {
		condition := `=(if retryCount = null then 0 else retryCount) > 0 or reviewDecision = "reprocess"`
		if want.gated {
			condition += " or gateCanary = true"
		}
		for _, n := range d.Process.Elements {
			if n.is("sequenceFlow") && n.Target == "record_retry_outcome" && n.Condition != condition {
				t.Errorf("flow %s is taken where %q, expected %q", n.ID, n.Condition, condition)
			}
		}
	})
}

// A person must not have decided by an answer that is neither: there is an incident instead.
func TestNobodyDecidesByMistake(t *testing.T) {
	each(t, func(t *testing.T, d document) {
		if byDefault := d.node("review_decision").Default; byDefault != "" {
			t.Errorf("without a decision the process goes to %s", byDefault)
		}
		if got, want := d.node("should_retry").Default, "do_not_retry"; got != want {
			t.Errorf("without shouldRetry the process takes %q, expected %q", got, want)
		}
		for flow, want := range map[string]string{
			"reprocess": `=reviewDecision = "reprocess"`, "discard": `=reviewDecision = "discard"`,
			"accept": `=reviewDecision = "accepted"`, "do_retry": "=shouldRetry = true",
		} {
			if got := d.node(flow).Condition; got != want {
				t.Errorf("flow %s is taken where %q, expected %q", flow, got, want)
			}
		}
	})
}
