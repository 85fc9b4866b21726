// Package bpmn reads the part of BPMN that the development engine runs. It refuses anything else by element, in the
// form of Zeebe's messages.
package bpmn

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/engine/feel"
)

// Kind is the type of an element, as Zeebe's records name it.
type Kind string

// The kinds of elements.
const (
	Root              Kind = "PROCESS"
	StartEvent        Kind = "START_EVENT"
	EndEvent          Kind = "END_EVENT"
	ServiceTask       Kind = "SERVICE_TASK"
	ExclusiveGateway  Kind = "EXCLUSIVE_GATEWAY"
	EventBasedGateway Kind = "EVENT_BASED_GATEWAY"
	CatchEvent        Kind = "INTERMEDIATE_CATCH_EVENT"
	ThrowEvent        Kind = "INTERMEDIATE_THROW_EVENT"
	BoundaryEvent     Kind = "BOUNDARY_EVENT"
)

// Process is one executable process. It and all that it holds are immutable.
type Process struct {
	ID       string
	Elements map[string]*Element
	Start    *Element
}

// Element is a flow node.
type Element struct {
	ID              string
	Kind            Kind
	Outgoing        []*Flow
	Default         *Flow // of an exclusive gateway; may be nil
	Inputs, Outputs []Mapping
	Task            *Task
	Timer           *Timer   // of a catch event
	Message         *Message // of a catch event
	Error           *Value   // code of an end event, or of a boundary event (nil: any code)
	Boundary        []*Element
	attachedTo      string
	incoming        int
}

// Flow is a sequence flow.
type Flow struct {
	ID        string
	Target    *Element
	Condition *feel.Expression // nil: none
}

// Task is what a service task asks of workers.
type Task struct {
	Type, Retries Value
	Headers       string // a JSON object
}

// Count returns the number of retries of a new job of the task.
func (t *Task) Count(lookup func(string) (feel.Raw, bool)) (n int32, err error) {
	value := t.Retries.Eval(lookup)
	if json.Unmarshal([]byte(value.String()), &n) != nil || value == "null" {
		return 0, fmt.Errorf("Expected result of the expression '%s' to be 'NUMBER', but was '%s'", t.Retries.String(), value.Kind())
	}
	return n, nil
}

// Timer of a catch event: an instant or a duration.
type Timer struct {
	IsDate bool
	Value  Value
}

// Message that a catch event waits for.
type Message struct{ Name, Key Value }

// Mapping assigns Source to the variable Target[0], or to a member of it.
type Mapping struct {
	Source Value
	Target []string
}

// Value is a literal or an expression.
type Value struct {
	literal    feel.Raw
	expression *feel.Expression
}

// Eval returns the value's JSON.
func (v *Value) Eval(lookup func(string) (feel.Raw, bool)) feel.Raw {
	if v.expression == nil {
		return v.literal
	}
	return v.expression.Eval(lookup)
}

// IsLiteral reports whether the value does not depend on variables.
func (v *Value) IsLiteral() bool { return v.expression == nil }

// String returns the expression or the literal, as incidents show it.
func (v *Value) String() string {
	if v.expression == nil {
		return v.literal.String()
	}
	return v.expression.String()
}

// Catches returns the boundary event that catches an error: one for its code, otherwise one for any code, otherwise
// nil.
func (e *Element) Catches(code string) (caught *Element) {
	for _, b := range e.Boundary {
		switch {
		case b.Error == nil:
			caught = b
		case b.Error.String() == code:
			return b
		}
	}
	return caught
}

// Due returns when a timer with that value fires that is set now. An instant must have an offset or Z; a duration is
// ISO 8601.
func (t *Timer) Due(value feel.Raw, now time.Time) (time.Time, error) {
	if value.Kind() != "STRING" {
		return now, fmt.Errorf("Expected result of the expression '%s' to be one of '[DURATION, PERIOD, STRING]', but was '%s'",
			t.Value.String(), value.Kind())
	}
	text := value.String()
	if !t.IsDate {
		due, ok := after(now, text)
		if !ok {
			return now, fmt.Errorf("Invalid duration format '%s' for expression '%s'", text, t.Value.String())
		}
		return due, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00"} {
		if due, err := time.Parse(layout, text); err == nil {
			return due, nil
		}
	}
	return now, fmt.Errorf("Invalid date-time format '%s' for expression '%s'", text, t.Value.String())
}

// duration matches ISO 8601's, such as PT5S, P1DT2H or -PT1M: at least one part, and at least one after a T.
var duration = regexp.MustCompile(`^(-)?P(?:(\d{1,8})Y)?(?:(\d{1,9})M)?(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?:(\d{1,9}H)?(\d{1,9}M)?(\d{1,9}(?:\.\d{1,9})?S)?))?$`)

// after returns the instant a duration after now; ok is false if text is no duration.
func after(now time.Time, text string) (_ time.Time, ok bool) {
	m := duration.FindStringSubmatch(text)
	if m == nil || strings.HasSuffix(text, "P") || strings.HasSuffix(text, "T") {
		return now, false
	}
	var n [4]int // years, months, weeks, days
	for i := range n {
		n[i], _ = strconv.Atoi(m[2+i]) // 0 if it is absent
	}
	clock, err := time.ParseDuration("0s" + strings.ToLower(m[6]+m[7]+m[8]))
	if m[1] == "-" {
		n, clock = [4]int{-n[0], -n[1], -n[2], -n[3]}, -clock
	}
	return now.AddDate(n[0], n[1], 7*n[2]+n[3]).Add(clock), err == nil
}
