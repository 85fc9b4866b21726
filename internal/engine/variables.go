package engine

import (
	"encoding/json"
	"fmt"

	"retry-worker/internal/engine/bpmn"
	"retry-worker/internal/engine/feel"
)

func (c *Core) setLocal(e *element, doc scopeVariables) {
	for _, name := range sortedKeys(doc) {
		c.set(e.key, name, doc[name])
	}
}

// merge updates the element's own variables and sets all others in the process instance. A local variable that already
// has the value counts as one of the others, as observed on Zeebe.
func (c *Core) merge(e *element, doc scopeVariables) {
	for _, name := range sortedKeys(doc) {
		if old, local := e.variables[name]; local && old != doc[name] {
			c.set(e.key, name, doc[name])
		} else {
			c.set(e.in.key, name, doc[name])
		}
	}
}

// set sets a variable of a scope, unless it has that value.
func (c *Core) set(scope int64, name string, value feel.Raw) {
	intent := created
	if old, there := c.variablesOf(scope)[name]; there {
		if old == value {
			return
		}
		intent = updated
	}
	in := scope
	if e := c.elements[scope]; e != nil {
		in = e.in.key
	}
	c.emit(variableType, intent, c.newKey(), Value{Name: name, Value: string(value), ScopeKey: scope, ProcessInstanceKey: in})
}

// mapped carries out mappings into a scope. It reports false after raising an incident for a variable of more than
// mostBytes, which a process that loops would let grow until the memory ends.
func (c *Core) mapped(e *element, scope int64, mappings []bpmn.Mapping, resume string) bool {
	for _, m := range mappings {
		value := m.Source.Eval(e.lookup)
		for n := len(m.Target) - 1; n > 0; n-- { // Target is a path into a variable
			value = withMember(valueAt(c.variablesOf(scope), m.Target[:n]), m.Target[n], value)
		}
		if len(value) > mostBytes {
			c.raise(e, nil, "IO_MAPPING_ERROR", fmt.Sprintf("the variable '%s' would have %d bytes; the development engine takes at most %d",
				m.Target[0], len(value), mostBytes), resume)
			return false
		}
		c.set(scope, m.Target[0], value)
	}
	return true
}

func valueAt(now scopeVariables, path []string) feel.Raw {
	value := now[path[0]]
	for _, name := range path[1:] {
		var members map[string]json.RawMessage
		if json.Unmarshal([]byte(value), &members) != nil {
			return ""
		}
		value = feel.Raw(members[name])
	}
	return value
}

// withMember returns an object with a member set. A value that is no object is replaced by one.
func withMember(object feel.Raw, name string, value feel.Raw) feel.Raw {
	members := map[string]json.RawMessage{}
	if json.Unmarshal([]byte(object), &members) != nil || members == nil {
		members = map[string]json.RawMessage{}
	}
	members[name] = json.RawMessage(value)
	text, _ := json.Marshal(members) // cannot fail: the members are valid JSON
	return feel.Raw(text)
}
