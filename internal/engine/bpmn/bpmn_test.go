package bpmn_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	models "retry-worker/bpmn"
	"retry-worker/internal/engine/bpmn"
	"retry-worker/internal/engine/feel"
)

// document is a file with one process, what stands beside it, and a task that is as it should be.
func document(inside, beside string) []byte {
	return fmt.Appendf(nil, `<b:definitions id="all" xmlns:b="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:z="http://camunda.org/schema/zeebe/1.0">
		<b:process id="P" isExecutable="true"><b:startEvent id="start"/><b:sequenceFlow id="f" sourceRef="start" targetRef="task"/>
		<b:serviceTask id="task"><b:extensionElements><z:taskDefinition type="work"/></b:extensionElements></b:serviceTask>%s</b:process>%s</b:definitions>`,
		inside, beside)
}

func TestBundledModels(t *testing.T) {
	for _, m := range models.Models() {
		processes, err := bpmn.Parse(m.Content)
		if err != nil || len(processes) != 1 || processes[0].ID != m.ProcessID {
			t.Errorf("%s: %v, %v", m.Name, processes, err)
		}
	}
}

// TestRefused: a model that the engine does not know whole is refused, with the element.
func TestRefused(t *testing.T) {
	const task = `<b:extensionElements><z:taskDefinition type="%s" retries="%s"/></b:extensionElements>`
	for name, c := range map[string]struct {
		inside, beside string
		says           []string
	}{
		"user task":         {`<b:userTask id="U"/>`, "", []string{"Element: U", "<userTask>"}},
		"sub-process":       {`<b:subProcess id="S"/>`, "", []string{"Element: S", "<subProcess>"}},
		"parallel gateway":  {`<b:parallelGateway id="G"/>`, "", []string{"Element: G", "<parallelGateway>"}},
		"loop":              {`<b:serviceTask id="L">` + fmt.Sprintf(task, "x", "1") + `<b:multiInstanceLoopCharacteristics/></b:serviceTask>`, "", []string{"Element: L", "multiInstance"}},
		"message start":     {`<b:startEvent id="M"><b:messageEventDefinition/></b:startEvent>`, "", []string{"Element: M", "messageEventDefinition"}},
		"signal":            {`<b:intermediateCatchEvent id="C"><b:signalEventDefinition/></b:intermediateCatchEvent>`, "", []string{"Element: C", "signalEventDefinition"}},
		"timer boundary":    {`<b:boundaryEvent id="B" attachedToRef="task"><b:timerEventDefinition/></b:boundaryEvent>`, "", []string{"Element: B"}},
		"cycle":             {`<b:intermediateCatchEvent id="C"><b:timerEventDefinition><b:timeCycle>R/PT1M</b:timeCycle></b:timerEventDefinition></b:intermediateCatchEvent>`, "", []string{"Element: C", "timeCycle"}},
		"bad duration":      {`<b:intermediateCatchEvent id="C"><b:timerEventDefinition><b:timeDuration>5 min</b:timeDuration></b:timerEventDefinition></b:intermediateCatchEvent>`, "", []string{"Element: C", "Invalid duration"}},
		"attribute":         {`<b:serviceTask id="A" colour="red">` + fmt.Sprintf(task, "x", "1") + `</b:serviceTask>`, "", []string{"Element: A", "'colour'"}},
		"zeebe attribute":   {`<b:serviceTask id="A" z:priority="1">` + fmt.Sprintf(task, "x", "1") + `</b:serviceTask>`, "", []string{"Element: A", "'priority'"}},
		"extension":         {`<b:serviceTask id="A"><b:extensionElements><z:taskDefinition type="x"/><z:executionListeners/></b:extensionElements></b:serviceTask>`, "", []string{"Element: A", "zeebe:executionListeners"}},
		"no definition":     {`<b:serviceTask id="A"/>`, "", []string{"Element: A", "zeebe:taskDefinition"}},
		"two definitions":   {`<b:serviceTask id="A"><b:extensionElements><z:taskDefinition type="x"/><z:taskDefinition type="y"/></b:extensionElements></b:serviceTask>`, "", []string{"Element: A", "exactly one"}},
		"retries":           {`<b:serviceTask id="A">` + fmt.Sprintf(task, "x", "many") + `</b:serviceTask>`, "", []string{"Element: A", "NUMBER"}},
		"expression":        {`<b:serviceTask id="A">` + fmt.Sprintf(task, "=now()", "1") + `</b:serviceTask>`, "", []string{"Element: A", "failed to parse expression 'now()'"}},
		"mapping":           {`<b:endEvent id="E"><b:extensionElements><z:ioMapping><z:output source="" target="a..b"/></z:ioMapping></b:extensionElements></b:endEvent>`, "", []string{"Element: E", "'target'", "'source'"}},
		"condition missing": {`<b:exclusiveGateway id="G"/><b:endEvent id="e1"/><b:endEvent id="e2"/><b:sequenceFlow id="F1" sourceRef="G" targetRef="e1"/><b:sequenceFlow id="F2" sourceRef="G" targetRef="e2"/>`, "", []string{"Element: F1", "Element: F2", "Must have a condition or be default flow"}},
		"condition at task": {`<b:endEvent id="e1"/><b:sequenceFlow id="F1" sourceRef="task" targetRef="e1"><b:conditionExpression>=true</b:conditionExpression></b:sequenceFlow>`, "", []string{"Element: F1", "behind an exclusive gateway"}},
		"default":           {`<b:exclusiveGateway id="G" default="none"/>`, "", []string{"Element: G", "Default flow"}},
		"nowhere":           {`<b:sequenceFlow id="F1" sourceRef="task" targetRef="moon"/>`, "", []string{"Element: F1", "targetRef"}},
		"two starts":        {`<b:startEvent id="again"/><b:sequenceFlow id="F1" sourceRef="again" targetRef="task"/>`, "", []string{"Element: P", "Multiple none start events"}},
		"same id":           {`<b:endEvent id="task"/>`, "", []string{"Element: task", "each its own"}},
		"behind the end":    {`<b:endEvent id="e1"/><b:sequenceFlow id="F1" sourceRef="e1" targetRef="task"/>`, "", []string{"Element: e1", "outgoing"}},
		"no code":           {`<b:endEvent id="e1"><b:errorEventDefinition errorRef="E"/></b:endEvent>`, `<b:error id="E"/>`, []string{"Element: e1", "errorCode"}},
		"code expression":   {`<b:boundaryEvent id="B" attachedToRef="task"><b:errorEventDefinition errorRef="E"/></b:boundaryEvent>`, `<b:error id="E" errorCode="=x"/>`, []string{"Element: B", "must not be an expression"}},
		"caught twice":      {strings.Repeat(`<b:boundaryEvent id="B%d" attachedToRef="task"><b:errorEventDefinition errorRef="E"/></b:boundaryEvent>`, 2), `<b:error id="E" errorCode="X"/>`, []string{"Element: task", "Multiple error catch events"}},
		"beside the flow":   {`<b:boundaryEvent id="B" attachedToRef="start"><b:errorEventDefinition/></b:boundaryEvent>`, "", []string{"Element: B", "attached to a service task"}},
		"not interrupting":  {`<b:boundaryEvent id="B" attachedToRef="task" cancelActivity="false"><b:errorEventDefinition/></b:boundaryEvent>`, "", []string{"Element: B", "non-interrupting"}},
		"one way":           {`<b:eventBasedGateway id="G"/>`, "", []string{"Element: G", "at least 2"}},
		"no subscription":   {`<b:intermediateCatchEvent id="C"><b:messageEventDefinition messageRef="M"/></b:intermediateCatchEvent>`, `<b:message id="M" name="m"/>`, []string{"Element: M", "zeebe:subscription"}},
		"no message":        {`<b:intermediateCatchEvent id="C"><b:messageEventDefinition messageRef="M"/></b:intermediateCatchEvent>`, "", []string{"Element: C", "Must reference a message"}},
		"many processes":    {"", strings.Repeat(`<b:process id="Q"/>`, 20), []string{"Element: all", "at most 20 processes"}},
		"same process":      {"", `<b:process id="P" isExecutable="true"><b:startEvent id="s"/></b:process>`, []string{"Duplicated process id 'P'"}},
	} {
		content := document(c.inside, c.beside)
		if name == "caught twice" {
			content = document(fmt.Sprintf(c.inside, 1, 2), c.beside)
		}
		_, err := bpmn.Parse(content)
		for _, says := range c.says {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, expected %q in it", name, err, says)
			}
		}
	}
	for content, says := range map[string]string{
		"": "it is no BPMN 2.0", "<a>": "it is no XML", "<definitions/>": "it is no BPMN 2.0",
		`<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" id="D"><process id="P"/></definitions>`: "at least one executable process",
		strings.Repeat("<a>", 200): "nested more than",
	} {
		if _, err := bpmn.Parse([]byte(content)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60s: %v, expected %q in it", content, err, says)
		}
	}
}

// TestLarge: a model costs memory in proportion to its size, be it as odd as it likes.
func TestLarge(t *testing.T) {
	const n = 2_000
	each := func(part string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(part, "#", strconv.Itoa(i)))
		}
		return b.String()
	}
	for name, content := range map[string][]byte{
		"comments": document(`<b:documentation>`+each(`word<!-- -->`)+`</b:documentation>`, ""),
		"boundary": document(each(`<b:boundaryEvent id="B#" attachedToRef="task"><b:errorEventDefinition/></b:boundaryEvent>`), ""),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = bpmn.Parse(content)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 100*uint64(len(content)) {
			t.Errorf("%s: %d bytes were allocated for %d", name, took, len(content))
		}
	}
}

func TestTimers(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"PT5S": "2026-01-31T12:00:05Z", "PT1H30M": "2026-01-31T13:30:00Z", "P1DT2H": "2026-02-01T14:00:00Z", "P1W": "2026-02-07T12:00:00Z",
		"P1Y": "2027-01-31T12:00:00Z", "PT0.5S": "2026-01-31T12:00:00.5Z", "-PT1M": "2026-01-31T11:59:00Z", "PT0S": "2026-01-31T12:00:00Z",
		"5 min": "", "PT": "", "P": "", "": "", "PT5": "", "PT5S5M": "", "PT-5S": "", "P5S": "", "PTxS": "", "PT99999999999S": "",
		"PT9999999H": "", "P999999999Y": "", // beyond any clock: not at once
	} {
		timer := bpmn.Timer{}
		expect(t, &timer, feel.Text(text), now, want)
	}
	for text, want := range map[string]string{
		"2026-03-01T17:00:00Z": "2026-03-01T17:00:00Z", "2026-03-01T17:00:00.250-03:00": "2026-03-01T20:00:00.25Z", "2026-03-01T17:00Z": "2026-03-01T17:00:00Z",
		"2026-03-01T17:00:00": "", "2026-02-30T17:00:00Z": "", "2026-03-01T17:00:00+02:00[Europe/Berlin]": "", "tomorrow": "",
	} {
		timer := bpmn.Timer{IsDate: true}
		expect(t, &timer, feel.Text(text), now, want)
	}
	expect(t, &bpmn.Timer{}, "null", now, "")
	expect(t, &bpmn.Timer{}, "5", now, "")
}

// expect holds a timer to an instant; empty: it is refused.
func expect(t *testing.T, timer *bpmn.Timer, value feel.Raw, now time.Time, want string) {
	t.Helper()
	due, err := timer.Due(value, now)
	if got := due.UTC().Format(time.RFC3339Nano); err == nil && got != want || err != nil && want != "" {
		t.Errorf("%s is due at %s (%v), expected %q", value, got, err, want)
	}
}
