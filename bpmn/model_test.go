package bpmn_test

import (
	"slices"
	"strings"
	"testing"
)

// onError are the contract's outputs on a BPMN error.
var onError = []string{"shouldRetry", "retryCount", "maxRetries", "retryReason", "errorClassification",
	"originalError", "retryPolicy", "deadLetterId", "responsibleTeam"}

// Variables that a BPMN error carries are lost unless its boundary event maps them.
func TestBoundaryEventsMapWhatTheErrorCarries(t *testing.T) {
	wanted := map[string][]string{
		"SUBMISSION_FAILED":    {"submissionError", "lastSubmissionTime"},
		"MAX_RETRIES_EXCEEDED": onError,
		"PERMANENT_ERROR":      onError,
	}
	each(t, func(t *testing.T, d document) {
		caught := 0
		for _, n := range d.Process.Elements {
			if !n.is("boundaryEvent") {
				continue
			}
			caught++
			code := d.code(n.Error.Ref)
			if code == "" {
				t.Errorf("boundary event %s catches no error code, expected one", n.ID)
			}
			for _, variable := range wanted[code] {
				if got := sourceOf(n.Extensions.Outputs, variable); got != "="+variable {
					t.Errorf("boundary event %s (%s) maps %s from %q, expected =%[3]s", n.ID, code, variable, got)
				}
			}
		}
		if caught == 0 {
			t.Error("no boundary event found")
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
	each(t, func(t *testing.T, d document) {
		if strings.TrimSpace(d.Process.Documentation) == "" {
			t.Error("the process has no documentation")
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
