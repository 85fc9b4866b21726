package bpmn_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const templateFolder = "element-templates"

type template struct {
	ID         string
	Version    int
	Properties []property
}

type property struct {
	ID        string
	Type      string
	Value     string
	Choices   []struct{ Value string }
	Condition json.RawMessage
	Binding   struct{ Type, Property, Name, Key, Source string }
}

// templates are the element templates of the folder, by the job type they set.
func templates(t *testing.T) map[string]template {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(templateFolder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	byType := map[string]template{}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var tpl template
		if err := json.Unmarshal(content, &tpl); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		byType[tpl.find("zeebe:taskDefinition", "type").Value] = tpl
	}
	return byType
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

// The table of the contract: what a job type reads under the policy tiss-submission, and answers.
var contractTasks = map[string]struct{ reads, answers []string }{
	"analyze-retry":            {analysisReads, analysisAnswers},
	"retry-submission-backoff": {analysisReads, analysisAnswers},
	"retry-review": {[]string{"deadLetterId", "claimId"}, []string{"reviewDecision", "reviewReason", "reviewedBy",
		"shouldRetry", "retryCount", "nextRetryTime", "backoffMinutes", "backoffDuration"}},
	"record-retry-outcome": {[]string{"claimId", "retryOutcome"}, nil},
}

var (
	analysisReads   = []string{"claimId", "submissionError", "retryCount", "lastSubmissionTime"}
	analysisAnswers = append([]string{"backoffMinutes", "backoffDuration", "nextRetryTime"}, onError...)
)

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

func TestTemplatesLetEveryInputBeMapped(t *testing.T) {
	for jobType, tpl := range templates(t) {
		for _, variable := range contractTasks[jobType].reads {
			if p := tpl.find("zeebe:input", variable); p.Value != "="+variable && len(p.Choices) == 0 {
				t.Errorf("%s offers the input %s with %q, expected =%[2]s", jobType, variable, p.Value)
			}
		}
		// An input under the name of an output hides the process's variable from an answer that
		// comes by SetVariables, and from a person who corrects an incident: only who asks gets one.
		for _, p := range tpl.Properties {
			cleared := p.Type == "Hidden" && p.Value == "=null"
			if p.Binding.Type == "zeebe:input" && p.Condition == nil && !cleared && p.Binding.Name != "retryOutcome" {
				t.Errorf("%s maps the input %s even where nobody asks for it", jobType, p.Binding.Name)
			}
		}
	}
}

func TestTemplatesNameThePolicy(t *testing.T) {
	for jobType, tpl := range templates(t) {
		if p := tpl.find("zeebe:taskHeader", "retryPolicy"); p.Value != "tiss-submission" || p.Type != "String" {
			t.Errorf("%s sets the header retryPolicy to %q, expected tiss-submission to begin with", jobType, p.Value)
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
	for _, p := range tpl.Properties {
		if p.Condition != nil {
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
	if mode := n.property("retry-worker:inputs"); mode == "policy" && inputs != len(n.Extensions.Inputs) || outputs != len(n.Extensions.Outputs) {
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
		for _, h := range x.Headers {
			if h.Key == p.Binding.Key {
				return h.Value
			}
		}
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

func (n *node) property(name string) string {
	for _, p := range n.Extensions.Properties {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}
