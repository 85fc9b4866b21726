package bpmn_test

import (
	"encoding/xml"
	"testing"

	"retry-worker/bpmn"
)

// document is a BPMN file as far as the tests look into it.
type document struct {
	Process struct {
		Documentation string `xml:"documentation"`
		Elements      []node `xml:",any"`
	} `xml:"process"`
	Errors []struct {
		ID   string `xml:"id,attr"`
		Code string `xml:"errorCode,attr"`
	} `xml:"error"`
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

func (n *node) is(kind string) bool { return n.XMLName.Local == kind }

func parse(t *testing.T, m bpmn.Model) document {
	t.Helper()
	var d document
	if err := xml.Unmarshal(m.Content, &d); err != nil {
		t.Fatalf("%s: %v", m.Name, err)
	}
	return d
}

// each runs a test over every model.
func each(t *testing.T, test func(t *testing.T, d document)) {
	eachWanted(t, func(t *testing.T, d document, _ expectation) { test(t, d) })
}

// eachWanted runs a test over every model with what is expected of it.
func eachWanted(t *testing.T, test func(t *testing.T, d document, want expectation)) {
	for _, m := range bpmn.Models() {
		t.Run(m.ProcessID, func(t *testing.T) {
			want, named := expectations[m.ProcessID]
			if !named {
				t.Fatalf("%s holds the process %s, of which the contract says nothing", m.Name, m.ProcessID)
			}
			test(t, parse(t, m), want)
		})
	}
}

// node finds an element of the process; one without anything where there is none.
func (d *document) node(id string) *node {
	for i := range d.Process.Elements {
		if d.Process.Elements[i].ID == id {
			return &d.Process.Elements[i]
		}
	}
	return &node{}
}

func (d *document) code(errorRef string) string {
	for _, e := range d.Errors {
		if e.ID == errorRef {
			return e.Code
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

func (d *document) start() *node {
	for i := range d.Process.Elements {
		if n := &d.Process.Elements[i]; n.is("startEvent") {
			return n
		}
	}
	return &node{}
}
