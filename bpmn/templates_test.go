package bpmn_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

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

// UnmarshalJSON refuses a form that these tests would overlook.
func (c *condition) UnmarshalJSON(text []byte) error {
	type plain condition
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	return strict.Decode((*plain)(c))
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

// templates calls take with each element template.
func templates(t *testing.T, take func(file, jobType string, tpl *template)) {
	t.Helper()
	names, err := filepath.Glob("element-templates/*.json")
	testkit.Must(t, err)
	for _, name := range names {
		var tpl template
		if err := json.Unmarshal([]byte(testkit.Read(t, name)), &tpl); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		take(filepath.Base(name), tpl.find("zeebe:taskDefinition", "type").Value, &tpl)
	}
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

// policies are those of the contract, and a hospital's own, whose names no template knows.
var policies = []string{"tiss-submission", "whatsapp-message", "failed-job", "job-queue", "no-retry", "of-the-house"}

// TestTemplates holds what a modeller is offered against testdata/templates.txt. The policy stays a text: a hospital's
// catalogue may hold policies of its own, and a choice would set those back to its first when a model moves to a newer
// template. An input is mapped only where somebody asks: under the name of an output it hides the process's variable from
// an answer that comes by SetVariables, and from a person who corrects an incident.
func TestTemplates(t *testing.T) {
	var all strings.Builder
	templates(t, func(file, jobType string, tpl *template) {
		fmt.Fprintf(&all, "%s: %s version %d for %s\n", file, tpl.ID, tpl.Version, jobType)
		if p := tpl.find("zeebe:taskHeader", "retryPolicy"); p.Type != "" {
			allowed := regexp.MustCompile(p.Constraints.Pattern.Value)
			fmt.Fprintf(&all, "  policy %q, a %s: %s\n  takes", p.Value, p.Type, p.Description)
			for _, name := range append([]string{"", "two words"}, policies...) {
				if allowed.MatchString(name) {
					fmt.Fprintf(&all, " %q", name)
				}
			}
			all.WriteString("\n")
		}
		fmt.Fprintf(&all, "  inputs by %q\n", tpl.find("zeebe:property", "retry-worker:inputs").Value)
		for _, mode := range []string{"policy", "mapped"} {
			last := ""
			for _, policy := range policies {
				if inputs := tpl.maps("zeebe:input", policy, mode); inputs != last {
					fmt.Fprintf(&all, "  %s from %s on:%s\n", mode, policy, inputs)
					last = inputs
				}
			}
		}
		fmt.Fprintf(&all, "  outputs:%s\n\n", tpl.maps("zeebe:output", "", ""))
	})
	golden.Check(t, "testdata/templates.txt", all.String())
}

// maps returns what is mapped under a policy, sorted; with its source where that has another name.
func (tpl *template) maps(binding, policy, mode string) string {
	var all []string
	for _, p := range tpl.Properties {
		if p.Binding.Type != binding || !p.Condition.holds(map[string]string{"retryPolicy": policy, "inputs": mode}) {
			continue
		}
		name, source := p.Binding.Name, p.Value
		if binding == "zeebe:output" {
			name, source = p.Value, p.Binding.Source
		}
		if source != "="+name {
			name += source
		}
		if p.Condition != nil && binding == "zeebe:output" {
			name += " sometimes"
		}
		all = append(all, " "+name)
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

// TestModelsFollowTheirTemplates: the models use them as a modeller would, so that both say the same.
func TestModelsFollowTheirTemplates(t *testing.T) {
	byType := map[string]*template{}
	templates(t, func(_, jobType string, tpl *template) { byType[jobType] = tpl })
	each(t, func(name string, p *process) {
		followed := 0
		for _, n := range p.Process.Elements {
			if tpl := byType[n.Extensions.Task.Type]; tpl != nil {
				compare(t, &n, tpl)
				followed++
			}
		}
		if followed == 0 {
			t.Errorf("%s has no task of the worker", name)
		}
	})
}

func compare(t *testing.T, n *node, tpl *template) {
	t.Helper()
	if n.Template != tpl.ID || n.TemplateV != strconv.Itoa(tpl.Version) {
		t.Errorf("task %s follows template %q version %q, expected %s version %d", n.ID, n.Template, n.TemplateV, tpl.ID, tpl.Version)
	}
	inputs, outputs := 0, 0
	values := map[string]string{"retryPolicy": valueOf(n.Extensions.Headers, "retryPolicy"), "inputs": valueOf(n.Extensions.Properties, "retry-worker:inputs")}
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
		return valueOf(x.Headers, p.Binding.Key)
	case "zeebe:property":
		return valueOf(x.Properties, p.Binding.Name)
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
