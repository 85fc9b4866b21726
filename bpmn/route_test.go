package bpmn_test

import (
	"slices"
	"strings"
	"testing"
)

func (d *document) start() *node {
	for i := range d.Process.Elements {
		if n := &d.Process.Elements[i]; n.is("startEvent") {
			return n
		}
	}
	return &node{}
}

// stops are where the process can come to rest next after an element: the job type of a task, the id of an
// event that waits or ends.
func (d *document) stops(from string) []string {
	var found []string
	seen := map[string]bool{}
	var walk func(id string)
	walk = func(id string) {
		for _, flow := range d.Process.Elements {
			if flow.Source != id || seen[flow.Target] || !flow.is("sequenceFlow") {
				continue
			}
			seen[flow.Target] = true
			switch n := d.node(flow.Target); {
			case n.Extensions.Task.Type != "":
				found = append(found, n.Extensions.Task.Type)
			case n.is("intermediateCatchEvent"), n.is("endEvent"):
				found = append(found, n.ID)
			default:
				walk(n.ID)
			}
		}
	}
	walk(from)
	slices.Sort(found)
	return found
}

func TestEveryFailureFindsItsWay(t *testing.T) {
	eachWanted(t, func(t *testing.T, d document, want expectation) {
		first := want.tasks[0].jobType
		if want.gated {
			first = "submission-gate"
		}
		caught := map[string]string{}
		for _, n := range d.Process.Elements {
			if n.is("boundaryEvent") && n.AttachedTo != "submission_gate" {
				caught[d.code(n.Error.Ref)] = n.ID
			}
		}
		for from, to := range map[string][]string{
			d.start().ID:                   {first},
			caught[want.failure]:           {"analyze-retry"},
			"analyze_retry":                {"retry-review", "wait_for_retry"},
			caught["MAX_RETRIES_EXCEEDED"]: {"retry-review"},
			caught["PERMANENT_ERROR"]:      {"retry-review"},
			"wait_for_retry":               {first},
			"retry_review":                 {"accepted", "discarded", "wait_for_retry"},
		} {
			if got := d.stops(from); !slices.Equal(got, to) {
				t.Errorf("%s leads to %v, expected %v", from, got, to)
			}
		}
		if to := []string{"retry-review", "wait_for_retry"}; want.gated && !slices.Equal(d.stops("cannot_be_sent_in_time"), to) { // by shouldRetry
			t.Errorf("what cannot be sent in time leads to %v, expected %v", d.stops("cannot_be_sent_in_time"), to)
		}
	})
}

func TestSuccessAfterARetryIsRecorded(t *testing.T) {
	eachWanted(t, func(t *testing.T, d document, want expectation) {
		last := want.tasks[len(want.tasks)-1].jobType
		for _, n := range d.Process.Elements {
			got := d.stops(n.ID)
			switch n.Extensions.Task.Type {
			case last:
				ends := slices.DeleteFunc(slices.Clone(got), func(id string) bool { return !d.node(id).is("endEvent") })
				if len(got) != 2 || len(ends) != 1 || !slices.Contains(got, "record-retry-outcome") {
					t.Errorf("%s leads to %v, expected an end, and record-retry-outcome after a retry", n.ID, got)
				}
			case "record-retry-outcome":
				if len(got) != 1 || !d.node(got[0]).is("endEvent") {
					t.Errorf("%s leads to %v, expected an end", n.ID, got)
				}
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

// What the portal may have taken is asked for behind the gate and before it is sent again, where the hospital has who
// asks; what is found is not sent, and everything else is (R33).
func TestAsksBeforeItSendsTwice(t *testing.T) {
	d := named(t, "SUB_06")
	for from, to := range map[string][]string{
		"submission_gate":  {"check-submission", "submit-claim"},
		"check_submission": {"record-retry-outcome", "submit-claim"},
		"check_failed":     {"submit-claim"},
		"record_accepted":  {"already_accepted"},
	} {
		if got := d.stops(from); !slices.Equal(got, to) {
			t.Errorf("%s leads to %v, expected %v", from, got, to)
		}
	}
	for flow, want := range map[string]string{
		"do_ask": "=possiblyAccepted = true and checkBeforeResend = true", "found": "=submissionFound = true",
	} {
		if got := d.node(flow).Condition; got != want {
			t.Errorf("flow %s is taken where %q, expected %q", flow, got, want)
		}
	}
	for gateway, want := range map[string]string{"ask_first": "do_not_ask", "was_found": "not_found"} {
		if got := d.node(gateway).Default; got != want {
			t.Errorf("without a word %s takes %q, expected %q", gateway, got, want)
		}
	}
	if got := sourceOf(d.node("record_accepted").Extensions.Inputs, "retryOutcome"); got != `="accepted"` {
		t.Errorf("what was found is recorded as %s, expected accepted", got)
	}
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

// TRD-0003: "status falha visível no CRM".
func TestTheMessageModelSaysWhereTheCRMReads(t *testing.T) {
	d := named(t, "WHATSAPP_MESSAGE")
	if want := "GET /api/v1/subjects/whatsapp-message/{messageId}"; !strings.Contains(d.Process.Documentation, want) {
		t.Errorf("the process's documentation does not name %s", want)
	}
}
