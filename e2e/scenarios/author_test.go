package scenarios

import (
	"bytes"
	"encoding/json"
	"html"
	"maps"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// The outputs of the contract.
var (
	completionOutputs = []string{
		"shouldRetry", "retryCount", "maxRetries", "backoffMinutes", "backoffDuration", "nextRetryTime", "retryReason",
		"errorClassification", "originalError", "retryPolicy", "possiblyAccepted",
	}
	errorOutputs = []string{
		"shouldRetry", "retryCount", "maxRetries", "retryReason", "errorClassification", "originalError", "retryPolicy", "possiblyAccepted",
		"deadLetterId", "responsibleTeam",
	}
)

// end is one way that an analysis ends in a process of another author.
type end struct {
	name, text string
	made       int // retries before
	endedBy    string
	outputs    []string
	want       map[string]string
}

var ends = []end{
	{"completed", "HTTP 503", 0, "scheduled", completionOutputs, map[string]string{
		"shouldRetry": "true", "retryCount": "1", "maxRetries": "5", "retryReason": `"Transient error, retry 1 of 5"`,
		"errorClassification": `"TRANSIENT"`, "originalError": `"HTTP 503"`, "retryPolicy": `"tiss-submission"`,
	}},
	{"limit", "HTTP 503", 5, "limit_reached", errorOutputs, map[string]string{
		"shouldRetry": "false", "retryCount": "5", "maxRetries": "5", "retryReason": `"Maximum of 5 retries reached"`,
		"errorClassification": `"TRANSIENT"`, "originalError": `"HTTP 503"`, "retryPolicy": `"tiss-submission"`, "responsibleTeam": `"faturamento"`,
	}},
	{"permanent", "INSURANCE_EXPIRED", 2, "given_up", errorOutputs, map[string]string{
		"shouldRetry": "false", "retryCount": "2", "maxRetries": "5", "retryReason": `"Permanent error, not retried"`,
		"errorClassification": `"PERMANENT"`, "originalError": `"INSURANCE_EXPIRED"`, "retryPolicy": `"tiss-submission"`, "responsibleTeam": `"cadastro"`,
	}},
}

var analyses = []string{worker.AnalyzeRetry, worker.RetrySubmissionBackoff}

// analysisCounts are the counts after each of the ends, once for each job type.
func analysisCounts() counts {
	c := counts{"processes completed": len(ends) * len(analyses)}
	for _, t := range analyses {
		c[t+" completed"], c[t+" error thrown"] = 1, 2
	}
	return c
}

// A model whose task has no header and no mapping, and whose boundary events map nothing.
func TestProcessOfAnotherAuthorSeesAllOutputs(t *testing.T) {
	withEverybody(t, byGRPC, func(t *testing.T, s *world) {
		for n, analysis := range analyses {
			for _, e := range ends {
				claimID := s.claimID(n)
				key := s.create("UNMAPPED", map[string]any{"analysis": analysis, "claimId": claimID, "submissionError": e.text, "retryCount": e.made})
				s.awaitEnded(key)
				i := s.instance(key)
				s.expectVariables(i, e.want)
				s.expectNames(i, slices.Concat([]string{"analysis", "claimId", "submissionError"}, e.outputs))
				if i.endedBy != e.endedBy {
					s.t.Errorf("%s %s: the process ended at %s, expected %s", analysis, e.name, i.endedBy, e.endedBy)
				}
				if e.endedBy != "scheduled" {
					expectUUID(s.t, i.variables["deadLetterId"])
				}
				s.expectEvent(key, analysis, e)
			}
		}
		s.expectCounts(analysisCounts())
		s.done("another author's model, no mapping", "%d instances", len(ends)*len(analyses))
	})
}

// expectNames holds the names of a process's variables against what they should be. The chance of a retry is there as well
// once the worker knows of others.
func (s *scenario) expectNames(i instance, want []string) {
	s.t.Helper()
	slices.Sort(want)
	got := slices.Sorted(maps.Keys(i.variables))
	got = slices.DeleteFunc(got, func(name string) bool { return name == "successProbability" })
	if !slices.Equal(got, want) {
		s.t.Errorf("the process %s has the variables %v, expected %v", i.process, got, want)
	}
}

// expectEvent holds the worker's log against R16.
func (s *scenario) expectEvent(key int64, analysis string, e end) {
	s.t.Helper()
	want := map[string]string{"completed": "retry_scheduled", "limit": "max_retries_exceeded", "permanent": "permanent_error_detected"}[e.name]
	if analysis == worker.RetrySubmissionBackoff && e.name == "completed" {
		want = "submission_retry_scheduled"
	}
	lines := s.worker.Log.About(s.t, key, 1)
	if len(lines) != 1 || lines[0].Text("event") != want {
		s.t.Errorf("%s %s: the worker's log has %v, expected one line with the event %s", analysis, e.name, lines, want)
	}
}

// The exception that the documents name: where a model makes retryCount an input of the task and maps no
// output, a new count stays with the task, and such a model would retry for ever; the element templates map
// the output (see the next test). All other outputs reach the process. The count that a BPMN error leaves as
// it was does so too: the engine hands a value that the task has already on to the process.
func TestNewRetryCountStaysInATaskThatTakesItAsInput(t *testing.T) {
	withEverybody(t, byGRPC, func(t *testing.T, s *world) {
		uncounted := ends[2]
		uncounted.name, uncounted.made = "permanent, no count before", -1 // the task's null becomes its 0
		stays := map[string]bool{"completed": true, uncounted.name: true}
		for n, analysis := range analyses {
			for _, e := range append(slices.Clone(ends), uncounted) {
				variables := map[string]any{"analysis": analysis, "claimId": s.claimID(n), "submissionError": e.text}
				if e.made >= 0 {
					variables["attempts"] = e.made
				}
				key := s.create("INPUT_MAPPED", variables)
				s.awaitEnded(key)
				i := s.instance(key)
				want, outputs := maps.Clone(e.want), slices.Clone(e.outputs)
				if stays[e.name] {
					delete(want, "retryCount")
					outputs = slices.DeleteFunc(outputs, func(name string) bool { return name == "retryCount" })
				}
				s.expectVariables(i, want)
				s.expectNames(i, slices.Concat(slices.Collect(maps.Keys(variables)), outputs))
			}
		}
		want := analysisCounts()
		for _, analysis := range analyses {
			want[analysis+" error thrown"]++
			want["processes completed"]++
		}
		s.expectCounts(want)
		s.done("retryCount as input, no output", "%d instances", want["processes completed"])
	})
}

// A loop whose task is mapped as the element template maps it, inputs included, ends: the count leaves
// the task every time.
func TestElementTemplateLetsTheCountOut(t *testing.T) {
	withEverybody(t, byGRPC, func(t *testing.T, s *world) {
		for n, analysis := range analyses {
			processID := "LOOP_" + strings.ReplaceAll(analysis, "-", "_")
			model := loopModel(s.t, processID, "../../bpmn/element-templates/"+analysis+".json")
			_, err := s.DeployResource(s.t.Context(), &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: processID + ".bpmn", Content: model}}})
			testkit.Must(s.t, err)
			key := s.create(processID, map[string]any{"claimId": s.claimID(n), "submissionError": "TIMEOUT"})
			s.awaitEnded(key)
			i := s.instance(key)
			s.expectVariables(i, map[string]string{"retryCount": "3", "retryReason": `"Transient error, retry 3 of 5"`})
			if jobs := i.of(analysis); len(jobs) != 3 {
				s.t.Errorf("%d analyses, expected 3", len(jobs))
			}
		}
		s.expectCounts(counts{"analyze-retry completed": 3, "retry-submission-backoff completed": 3, "processes completed": 2})
		s.done("element templates, loop of three", "2 instances, 6 analyses")
	})
}

// binding is one property of an element template, with what it is bound to.
type binding struct {
	ID      string
	Value   string
	Binding struct{ Type, Property, Name, Key, Source string }
	// Condition for the property to apply: one, or all of several.
	Condition *struct {
		condition
		AllMatch []condition
	}
}

type condition struct{ Property, Equals string }

type named struct{ Name, Value string }

// mappings are what a modeler writes into a model when a template is applied.
type mappings struct {
	ProcessID, Type, Retries string
	Headers, Inputs, Outputs []named
}

// loopModel is the loop with a template applied as a modeler applies it, its inputs mapped.
func loopModel(t *testing.T, processID, path string) []byte {
	t.Helper()
	var element struct{ Properties []binding }
	testkit.Must(t, json.Unmarshal([]byte(testkit.Read(t, path)), &element))
	skeleton, err := testdata.ReadFile("testdata/template_loop.bpmn.tmpl")
	testkit.Must(t, err)
	var model bytes.Buffer
	applied := apply(element.Properties, map[string]string{"inputs": "mapped"})
	applied.ProcessID = processID
	testkit.Must(t, template.Must(template.New("").Parse(string(skeleton))).Execute(&model, applied))
	return model.Bytes()
}

// apply gives each property its value: the one chosen, else the template's own.
func apply(properties []binding, chosen map[string]string) (m mappings) {
	values := make(map[string]string)
	for _, p := range properties {
		values[p.ID] = p.Value
	}
	maps.Copy(values, chosen)
	holds := func(c condition) bool { return values[c.Property] == c.Equals }
	for _, p := range properties {
		if c := p.Condition; c != nil && (c.Property != "" && !holds(c.condition) || slices.ContainsFunc(c.AllMatch, func(c condition) bool { return !holds(c) })) {
			continue
		}
		value := html.EscapeString(p.Value)
		switch b := p.Binding; {
		case b.Type == "zeebe:taskDefinition" && b.Property == "type":
			m.Type = value
		case b.Type == "zeebe:taskDefinition" && b.Property == "retries":
			m.Retries = value
		case b.Type == "zeebe:taskHeader":
			m.Headers = append(m.Headers, named{b.Key, value})
		case b.Type == "zeebe:input":
			m.Inputs = append(m.Inputs, named{b.Name, value})
		case b.Type == "zeebe:output": // the value names the variable, the binding says where from
			m.Outputs = append(m.Outputs, named{value, html.EscapeString(b.Source)})
		}
	}
	return m
}

func TestUnknownPolicyIsAnIncidentThatListsTheNames(t *testing.T) {
	withEverybody(t, byGRPC, func(t *testing.T, s *world) {
		var keys []int64
		for n, analysis := range analyses {
			keys = append(keys, s.create("UNKNOWN_POLICY", map[string]any{"analysis": analysis, "claimId": s.claimID(n), "submissionError": "TIMEOUT"}))
		}
		s.awaitAll(keys, "the incidents", func(i *instance) bool { return len(i.incidents) > 0 })
		s.expectCounts(counts{
			"incidents pending":    2,
			"analyze-retry failed": 1, "analyze-retry created": 1,
			"retry-submission-backoff failed": 1, "retry-submission-backoff created": 1,
		})
		for _, key := range keys {
			i := s.instance(key)
			const want = `UNKNOWN_POLICY: retryPolicy is "never-written" (text), expected one of ` +
				`failed-job, job-queue, no-retry, tiss-submission, whatsapp-message; `
			if x := i.incidents; len(x) != 1 || x[0].kind != "JOB_NO_RETRIES" || !strings.HasPrefix(x[0].message, want) {
				s.t.Errorf("got the incidents %+v, expected one, JOB_NO_RETRIES, that says %s", *x[0], want)
			}
			_, err := s.CancelProcessInstance(s.t.Context(), &pb.CancelProcessInstanceRequest{ProcessInstanceKey: key})
			testkit.Must(s.t, err)
		}
		s.awaitEnded(keys...)
		s.done("unknown policy", "2 instances, 2 incidents")
	})
}
