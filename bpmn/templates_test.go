package bpmn_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"retry-worker/internal/testkit"
)

const templateFolder = "element-templates"

type template struct {
	ID         string
	Version    int
	Properties []property
}

type property struct {
	ID          string
	Type        string
	Value       string
	Description string
	Choices     []struct{ Value string }
	Constraints struct{ Pattern struct{ Value string } }
	Condition   *condition
	Binding     struct{ Type, Property, Name, Key, Source string }
}

// condition of a property: on the value of another one, or several conditions that all must hold.
type condition struct {
	Property string
	Equals   string
	OneOf    []string
	AllMatch []condition
}

// holds says whether the modeller shows the property where the others have these values.
func (c *condition) holds(values map[string]string) bool {
	if c == nil {
		return true
	}
	for i := range c.AllMatch {
		if !c.AllMatch[i].holds(values) {
			return false
		}
	}
	if c.OneOf != nil {
		return slices.Contains(c.OneOf, values[c.Property])
	}
	return c.Property == "" || values[c.Property] == c.Equals
}

// templates are the element templates of the folder, by the job type they set.
func templates(t *testing.T) map[string]template {
	t.Helper()
	byType := map[string]template{}
	names, err := filepath.Glob(templateFolder + "/*.json")
	testkit.Must(t, err)
	for _, name := range names {
		content := []byte(testkit.Read(t, name))
		var tpl template
		if err := json.Unmarshal(content, &tpl); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		tpl.expectKnownConditions(t, name, content)
		byType[tpl.find("zeebe:taskDefinition", "type").Value] = tpl
	}
	return byType
}

// expectKnownConditions sees that no condition has a form that this test would overlook.
func (tpl *template) expectKnownConditions(t *testing.T, name string, content []byte) {
	t.Helper()
	var raw struct {
		Properties []struct{ Condition json.RawMessage }
	}
	if err := json.Unmarshal(content, &raw); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, p := range raw.Properties {
		strict := json.NewDecoder(bytes.NewReader(p.Condition))
		strict.DisallowUnknownFields()
		if err := strict.Decode(new(condition)); err != nil && p.Condition != nil {
			t.Errorf("%s: the condition %s: %v", name, p.Condition, err)
		}
	}
}

// inputs that a modeller gets under a policy, sorted; cleared are those that begin without a value, whoever asks.
func (tpl *template) inputs(policy, mode string) (mapped, cleared []string) {
	for _, p := range tpl.Properties {
		if p.Binding.Type != "zeebe:input" || !p.Condition.holds(map[string]string{"retryPolicy": policy, "inputs": mode}) {
			continue
		}
		if p.Type == "Hidden" && p.Value == "=null" && p.Condition == nil {
			cleared = append(cleared, p.Binding.Name)
			continue
		}
		mapped = append(mapped, p.Binding.Name)
	}
	slices.Sort(mapped)
	slices.Sort(cleared)
	return mapped, cleared
}

// find is the property bound to what name says; a zero one where there is none.
func (tpl *template) find(binding, name string) property {
	for _, p := range tpl.Properties {
		b := p.Binding
		if b.Type == binding && slices.Contains([]string{b.Property, b.Name, b.Key, b.Source}, name) {
			return p
		}
	}
	return property{}
}

// contractTask is a row of the contract: what a job type reads under every policy, beside the policy's id; whether it
// reads the failure too; what it answers; and what must have no value when it begins.
type contractTask struct {
	reads    []string
	failure  bool
	leads    bool // it reads the destination
	answers  []string
	unsaid   []string
	ownInput string // it is set whoever asks
	// hospital tells that the hospital's own worker takes it, which knows no policy.
	hospital bool
}

var contractTasks = map[string]contractTask{
	"analyze-retry":            analysis,
	"retry-submission-backoff": analysis,
	"retry-review": {
		reads: []string{"deadLetterId"},
		answers: []string{"reviewDecision", "reviewReason", "reviewedBy", "protocolNumber",
			"shouldRetry", "retryCount", "nextRetryTime", "backoffMinutes", "backoffDuration", "submissionDeadline"},
		unsaid: []string{"reviewDecision", "reviewReason", "reviewedBy", "protocolNumber", "nextRetryTime", "backoffDuration"},
	},
	"record-retry-outcome": {ownInput: "retryOutcome"},
	"submission-gate": {
		reads: []string{"submissionDeadline"}, leads: true, answers: []string{"gateHeld", "gateReason", "gateCanary"},
	},
	"check-submission": {
		answers: []string{"submissionFound", "protocolNumber"}, unsaid: []string{"submissionFound", "protocolNumber"}, hospital: true,
	},
}

var analysis = contractTask{
	reads: []string{"retryCount", "lastSubmissionTime"}, failure: true,
	answers: append([]string{"backoffMinutes", "backoffDuration", "nextRetryTime", "successProbability"}, onError...),
	unsaid:  []string{"successProbability"},
}

// under is what a modeller is to be offered where the policy is this one.
func (c *contractTask) under(policy string) []string {
	p := policyReads[policy]
	if c.hospital {
		p.id = ""
	}
	want := slices.Clone(c.reads)
	if c.failure {
		want = append(want, p.failure...)
	}
	if c.leads && p.destination != "" {
		want = append(want, p.destination)
	}
	for _, one := range []string{p.id, c.ownInput} {
		if one != "" {
			want = append(want, one)
		}
	}
	slices.Sort(want)
	return want
}

func TestTemplatesAreThoseOfTheContractsJobTypes(t *testing.T) {
	got, want := slices.Sorted(maps.Keys(templates(t))), slices.Sorted(maps.Keys(contractTasks))
	if !slices.Equal(got, want) {
		t.Fatalf("templates for the job types %v, expected %v", got, want)
	}
	for jobType, tpl := range templates(t) {
		if want := "retry-worker." + jobType; tpl.ID != want || tpl.Version < 1 {
			t.Errorf("template id %q version %d, expected %q and a version from 1 on", tpl.ID, tpl.Version, want)
		}
		if _, err := os.Stat(filepath.Join(templateFolder, jobType+".json")); err != nil {
			t.Errorf("template of %s: %v", jobType, err)
		}
	}
}

func TestTemplatesMapEveryOutput(t *testing.T) {
	for jobType, tpl := range templates(t) {
		var outputs []string
		for _, p := range tpl.Properties {
			if p.Binding.Type != "zeebe:output" {
				continue
			}
			if p.Binding.Source != "="+p.Value || p.Condition != nil {
				t.Errorf("%s maps %s to %q, expected the same name, always", jobType, p.Binding.Source, p.Value)
			}
			outputs = append(outputs, p.Value)
		}
		slices.Sort(outputs)
		want := slices.Sorted(slices.Values(contractTasks[jobType].answers))
		if !slices.Equal(outputs, want) {
			t.Errorf("%s maps the outputs %v, expected %v", jobType, outputs, want)
		}
	}
}

func TestTemplatesLetEveryInputOfThePolicyBeMapped(t *testing.T) {
	for jobType, tpl := range templates(t) {
		task := contractTasks[jobType]
		for policy := range policyReads {
			mapped, cleared := tpl.inputs(policy, "mapped")
			if want := task.under(policy); !slices.Equal(mapped, want) {
				t.Errorf("%s offers the inputs %v under %s, expected %v", jobType, mapped, policy, want)
			}
			if want := slices.Sorted(slices.Values(task.unsaid)); !slices.Equal(cleared, want) {
				t.Errorf("%s begins without %v, expected without %v", jobType, cleared, want)
			}
		}
		for _, p := range tpl.Properties {
			if p.Binding.Type == "zeebe:input" && p.Type == "String" && p.Value != "="+p.Binding.Name {
				t.Errorf("%s offers the input %s with %q, expected =%[2]s", jobType, p.Binding.Name, p.Value)
			}
		}
	}
}

// An input under the name of an output hides the process's variable from an answer that comes by
// SetVariables, and from a person who corrects an incident: only who asks gets one.
func TestTemplatesMapNoInputUnasked(t *testing.T) {
	for jobType, tpl := range templates(t) {
		if p := tpl.find("zeebe:property", "retry-worker:inputs"); p.Value != "policy" && !contractTasks[jobType].hospital {
			t.Errorf("%s takes its inputs from %q, expected the process to begin with", jobType, p.Value)
		}
		for policy := range policyReads {
			mapped, _ := tpl.inputs(policy, "policy")
			if want := contractTasks[jobType].ownInput; strings.Join(mapped, " ") != want {
				t.Errorf("%s maps the inputs %v under %s where nobody asks for them, expected %q", jobType, mapped, policy, want)
			}
		}
	}
}

// The policy stays a text: a hospital's catalogue may hold policies of its own, and a choice would set those
// back to its first when a model moves to a newer template.
func TestTemplatesNameThePolicy(t *testing.T) {
	for jobType, tpl := range templates(t) {
		if contractTasks[jobType].hospital {
			continue
		}
		p := tpl.find("zeebe:taskHeader", "retryPolicy")
		if p.Value != "tiss-submission" || p.Type != "String" {
			t.Errorf("%s sets the header retryPolicy to %q (%s), expected the text tiss-submission to begin with", jobType, p.Value, p.Type)
		}
		allowed := regexp.MustCompile(p.Constraints.Pattern.Value)
		for policy := range policyReads {
			if !allowed.MatchString(policy) {
				t.Errorf("%s refuses the policy %s", jobType, policy)
			}
			if bundled := policyReads[policy].id != ""; bundled && !strings.Contains(p.Description, policy) {
				t.Errorf("%s does not say that there is the policy %s: %q", jobType, policy, p.Description)
			}
		}
		if allowed.MatchString("two words") || allowed.MatchString("") {
			t.Errorf("%s takes a name that no policy has", jobType)
		}
	}
}

// The models use the templates as a modeller would, so that both say the same.
func TestModelsFollowTheirTemplates(t *testing.T) {
	byType := templates(t)
	each(t, func(t *testing.T, d document) {
		followed := 0
		for _, n := range d.Process.Elements {
			if tpl, ours := byType[n.Extensions.Task.Type]; ours {
				compare(t, &n, &tpl)
				followed++
			}
		}
		if followed == 0 {
			t.Error("no task of the worker found")
		}
	})
}

func compare(t *testing.T, n *node, tpl *template) {
	t.Helper()
	if n.Template != tpl.ID || n.TemplateV != strconv.Itoa(tpl.Version) {
		t.Errorf("task %s follows template %q version %q, expected %s version %d", n.ID, n.Template, n.TemplateV, tpl.ID, tpl.Version)
	}
	inputs, outputs := 0, 0
	values := map[string]string{"retryPolicy": n.header("retryPolicy"), "inputs": n.property("retry-worker:inputs")}
	for _, p := range tpl.Properties {
		if !p.Condition.holds(values) {
			continue
		}
		switch p.Binding.Type {
		case "zeebe:input":
			inputs++
		case "zeebe:output":
			outputs++
		}
		if got := p.in(n); got != p.Value && !p.offers(got) {
			t.Errorf("task %s has %q for %+v, expected %q", n.ID, got, p.Binding, p.Value)
		}
	}
	if inputs != len(n.Extensions.Inputs) || outputs != len(n.Extensions.Outputs) {
		t.Errorf("task %s maps %d inputs and %d outputs, expected the template's %d and %d",
			n.ID, len(n.Extensions.Inputs), len(n.Extensions.Outputs), inputs, outputs)
	}
}

// in is what the task has where p is bound.
func (p *property) in(n *node) string {
	x := &n.Extensions
	switch p.Binding.Type + " " + p.Binding.Property {
	case "zeebe:taskDefinition type":
		return x.Task.Type
	case "zeebe:taskDefinition retries":
		return x.Task.Retries
	}
	switch p.Binding.Type {
	case "zeebe:input":
		return sourceOf(x.Inputs, p.Binding.Name)
	case "zeebe:output":
		for _, m := range x.Outputs {
			if m.Source == p.Binding.Source {
				return m.Target
			}
		}
	case "zeebe:taskHeader":
		return n.header(p.Binding.Key)
	case "zeebe:property":
		return n.property(p.Binding.Name)
	}
	return ""
}

// offers says whether a modeller may choose value.
func (p *property) offers(value string) bool {
	for _, c := range p.Choices {
		if c.Value == value {
			return true
		}
	}
	return p.Binding.Type == "zeebe:taskHeader" && strings.TrimSpace(value) != ""
}

func (n *node) header(key string) string { return valueOf(n.Extensions.Headers, key) }

func (n *node) property(name string) string { return valueOf(n.Extensions.Properties, name) }

// valueOf is what pairs have under a key, or a name; "" where they have none.
func valueOf(pairs []pair, name string) string {
	for _, p := range pairs {
		if p.Key+p.Name == name {
			return p.Value
		}
	}
	return ""
}
