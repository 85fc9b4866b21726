package bpmn_test

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"testing"

	"retry-worker/bpmn"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// process is one of a BPMN file, as far as the tests look into it.
type process struct {
	Process struct {
		Documentation string `xml:"documentation"`
		Elements      []node `xml:",any"`
	} `xml:"process"`
	Errors []bpmnError `xml:"error"`
}

type bpmnError struct {
	ID   string `xml:"id,attr"`
	Code string `xml:"errorCode,attr"`
}

// node is a flow node, a sequence flow or an annotation.
type node struct {
	XMLName       xml.Name
	ID            string `xml:"id,attr"`
	Name          string `xml:"name,attr"`
	AttachedTo    string `xml:"attachedToRef,attr"`
	Default       string `xml:"default,attr"`
	Target        string `xml:"targetRef,attr"`
	Template      string `xml:"modelerTemplate,attr"`
	TemplateV     string `xml:"modelerTemplateVersion,attr"`
	Documentation string `xml:"documentation"`
	Error         struct {
		Ref string `xml:"errorRef,attr"`
	} `xml:"errorEventDefinition"`
	Condition  string `xml:"conditionExpression"`
	Extensions struct {
		Task struct {
			Type    string `xml:"type,attr"`
			Retries string `xml:"retries,attr"`
		} `xml:"taskDefinition"`
		Headers    []pair    `xml:"taskHeaders>header"`
		Properties []pair    `xml:"properties>property"`
		Inputs     []mapping `xml:"ioMapping>input"`
		Outputs    []mapping `xml:"ioMapping>output"`
	} `xml:"extensionElements"`
}

type pair struct {
	Key   string `xml:"key,attr"`
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type mapping struct {
	Source string `xml:"source,attr"`
	Target string `xml:"target,attr"`
}

// each calls test with every model.
func each(t *testing.T, test func(name string, p *process)) {
	t.Helper()
	for _, m := range bpmn.Models() {
		var p process
		testkit.Must(t, xml.Unmarshal(m.Content, &p))
		test(fmt.Sprintf("%s in %s", m.ProcessID, m.Name), &p)
	}
}

// TestModels holds what the models promise against testdata/models.txt: the contract's tasks and policies, what of an
// error's variables is mapped (the others are lost), where the process goes, and what staff read. Without a person's
// decision, or with one that is neither, it goes nowhere.
func TestModels(t *testing.T) {
	var all strings.Builder
	each(t, func(name string, p *process) {
		fmt.Fprintf(&all, "%s: %s\n", name, line(p.Process.Documentation))
		for _, n := range p.Process.Elements {
			all.WriteString(p.describe(&n))
		}
		all.WriteString("\n")
	})
	golden.Check(t, "testdata/models.txt", all.String())
}

// describe returns a line about an element; none about a flow without a condition and what is no part of the flow.
func (p *process) describe(n *node) string {
	kind, x := n.XMLName.Local, &n.Extensions
	said := "  " + kind + " " + n.ID
	switch {
	case kind == "sequenceFlow" && n.Condition != "":
		return fmt.Sprintf("%s to %s where %s\n", said, n.Target, n.Condition)
	case !strings.HasSuffix(kind, "Event") && !strings.HasSuffix(kind, "Task") && !strings.HasSuffix(kind, "Gateway"):
		return ""
	case kind == "startEvent":
		said += ": " + line(n.Documentation)
	}
	if x.Task.Type != "" {
		said += fmt.Sprintf(": %s, %s retries, policy %q", x.Task.Type, x.Task.Retries, valueOf(x.Headers, "retryPolicy"))
	}
	if n.AttachedTo != "" {
		of := slices.IndexFunc(p.Errors, func(e bpmnError) bool { return e.ID == n.Error.Ref })
		said += fmt.Sprintf(" at %s catches %s:", n.AttachedTo, p.Errors[of].Code)
		for _, m := range x.Outputs {
			if said += " " + m.Target; m.Source != "="+m.Target {
				said += m.Source
			}
		}
	}
	if n.Default != "" {
		said += ", otherwise " + n.Default
	}
	if strings.TrimSpace(n.Documentation) == "" {
		said += ", UNDOCUMENTED"
	}
	if n.Name == "" && !strings.HasSuffix(kind, "Gateway") {
		said += ", WITHOUT A NAME"
	}
	return said + "\n"
}

// line returns a text in one line.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }

// valueOf is what pairs have under a key, or a name; "" where they have none.
func valueOf(pairs []pair, name string) string {
	for _, p := range pairs {
		if p.Key+p.Name == name {
			return p.Value
		}
	}
	return ""
}

// sourceOf is what a mapping list puts into target; "" where it does not.
func sourceOf(mappings []mapping, target string) string {
	for _, m := range mappings {
		if m.Target == target {
			return m.Source
		}
	}
	return ""
}
