package bpmn_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"retry-worker/bpmn"
)

// named is the model of a process.
func named(t *testing.T, process string) document {
	t.Helper()
	for _, m := range bpmn.Models() {
		if m.ProcessID == process {
			return parse(t, m)
		}
	}
	t.Fatalf("no model of %s", process)
	return document{}
}

// The words of UC-004, at the stage that each belongs to.
func TestTheQueueSaysItsStatus(t *testing.T) {
	d := named(t, "JOB_QUEUE")
	want := map[string]string{
		"job_ready":           `="WAITING"`,
		"check_dependencies":  `=if openDependencies = 0 then "PENDING" else "WAITING"`,
		"dependency_resolved": `="WAITING"`,
		"job_starts":          `="RUNNING"`,
		"job_done":            `="COMPLETED"`,
		"job_delayed":         `="DELAYED"`,
		"wait_for_retry":      `="WAITING"`,
		"job_failed_finally":  `="FAILED"`,
	}
	said := map[string]bool{}
	for _, n := range d.Process.Elements {
		got := sourceOf(n.Extensions.Outputs, "jobStatus")
		if got != want[n.ID] {
			t.Errorf("%s sets jobStatus to %q, expected %q", n.ID, got, want[n.ID])
		}
		for _, word := range regexp.MustCompile(`"[A-Z]+"`).FindAllString(got, -1) {
			said[strings.Trim(word, `"`)] = true
		}
	}
	for _, word := range []string{"WAITING", "PENDING", "RUNNING", "DELAYED", "FAILED", "COMPLETED"} {
		if !said[word] || !strings.Contains(d.Process.Documentation, word) {
			t.Errorf("jobStatus never says %s, or the documentation does not explain it", word)
		}
	}
	if len(said) != 6 {
		t.Errorf("jobStatus says %v, expected six words", said)
	}
}

// Each word is said on the way to its stage, and nowhere else.
func TestTheQueuesStatusIsSaidInTime(t *testing.T) {
	d := named(t, "JOB_QUEUE")
	for event, way := range map[string]struct{ from, to []string }{
		"job_starts":         {[]string{"dependencies_open"}, []string{"run_queued_job"}},
		"job_done":           {[]string{"run_queued_job"}, []string{"was_retried"}},
		"job_delayed":        {[]string{"join_wait"}, []string{"wait_for_retry"}},
		"job_failed_finally": {[]string{"join_review"}, []string{"retry_review"}},
	} {
		var from, to []string
		for _, flow := range d.Process.Elements {
			if flow.Target == event && flow.is("sequenceFlow") {
				from = append(from, flow.Source)
			}
			if flow.Source == event {
				to = append(to, flow.Target)
			}
		}
		if !slices.Equal(from, way.from) || !slices.Equal(to, way.to) {
			t.Errorf("%s stands between %v and %v, expected %v and %v", event, from, to, way.from, way.to)
		}
	}
	for task, want := range map[string]int{"run_queued_job": 1, "wait_for_retry": 1, "retry_review": 1} {
		ways := 0
		for _, flow := range d.Process.Elements {
			if flow.Target == task {
				ways++
			}
		}
		if ways != want {
			t.Errorf("%d ways lead to %s, expected %d: by the event that says the status", ways, task, want)
		}
	}
}

// UC-004, step 7: a job whose dependencies are open waits, and is not run by an answer that is no number.
func TestTheQueueWaitsForDependencies(t *testing.T) {
	d := named(t, "JOB_QUEUE")
	if byDefault := d.node("dependencies_open").Default; byDefault != "" {
		t.Errorf("without openDependencies the process goes to %s", byDefault)
	}
	for flow, want := range map[string]string{"none_open": "=openDependencies = 0", "some_open": "=openDependencies > 0"} {
		if got := d.node(flow).Condition; got != want {
			t.Errorf("flow %s is taken where %q, expected %q", flow, got, want)
		}
	}
	for from, want := range map[string][]string{
		"check_dependencies":  {"dependency_resolved", "recheck_time", "run-queued-job"},
		"dependency_resolved": {"check-dependencies"},
		"recheck_time":        {"check-dependencies"},
	} {
		if got := d.stops(from); !slices.Equal(got, want) {
			t.Errorf("%s leads to %v, expected %v", from, got, want)
		}
	}
	if got := d.node("recheck_time").Timer.Duration; got != "PT1M" {
		t.Errorf("the dependencies are checked again after %q, expected PT1M", got)
	}
}

func TestTheQueueIsWokenByItsJobsMessage(t *testing.T) {
	d := named(t, "JOB_QUEUE")
	event := d.node("dependency_resolved")
	if len(d.Messages) != 1 || d.Messages[0].ID != event.Message.Ref {
		t.Fatalf("messages %+v, expected the one of %s", d.Messages, event.ID)
	}
	if m := d.Messages[0]; m.Name != "dependency-resolved" || m.Subscription.CorrelationKey != "=jobId" {
		t.Errorf("the message is %q by %q, expected dependency-resolved by =jobId", m.Name, m.Subscription.CorrelationKey)
	}
	// Without any output mapping all variables of the message would enter the process.
	if len(event.Extensions.Outputs) == 0 {
		t.Error("the message may overwrite the process's variables")
	}
}
