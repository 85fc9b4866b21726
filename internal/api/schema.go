package api

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
)

// Schema is a JSON Schema (2020-12) as OpenAPI 3.1 has it.
type Schema map[string]any

// closedSet is a type with all its values.
type closedSet struct {
	of     reflect.Type
	name   string
	values []any
}

// closed returns a closed set, with its name in the description.
func closed[T ~string](name string, values ...T) closedSet {
	set := closedSet{of: reflect.TypeFor[T](), name: name}
	for _, v := range values {
		set.values = append(set.values, string(v))
	}
	return set
}

var closedSets = []closedSet{
	closed("Reason", decision.Reasons()...),
	closed("Classification", decision.Transient, decision.Permanent, decision.Unknown),
	closed("DecisionOutcome", decision.Retry, decision.MaxRetriesExceeded, decision.PermanentError),
	closed("BusinessRule", decision.RNBIL004, decision.RNBIL005),
	closed("ContextType", decision.ContextTypes()...),
	closed("EpisodeState", "", journal.Scheduled, journal.Due, journal.Recovered, journal.Dead, journal.Reprocessing,
		journal.Discarded, journal.Accepted, journal.Superseded, journal.Abandoned, journal.Expired),
	closed("Status", journal.StatusPending, journal.StatusResending, journal.StatusFailed, journal.StatusDelivered,
		journal.StatusDiscarded),
	closed("DeadLetterState", journal.DeadLetterStates()...),
	closed("Process", deadletter.Waiting, deadletter.Expected, deadletter.Nobody, deadletter.Answered),
	closed("BulkAction", journal.BulkRetry, journal.BulkDiscard, journal.BulkAccept),
	closed("BulkState", journal.BulkRunning, journal.BulkPaused, journal.BulkCancelled, journal.BulkDone),
	closed("BulkOutcome", journal.BulkOutcomes()...),
	closed("DestinationState", destination.Up, destination.Down, destination.Testing, destination.Ramping),
}

// closedSetOf returns the closed set of a type; nil if it has none.
func closedSetOf(t reflect.Type) *closedSet {
	if n := slices.IndexFunc(closedSets, func(s closedSet) bool { return s.of == t }); n >= 0 {
		return &closedSets[n]
	}
	return nil
}

// schemas holds the schemas that others refer to by name. If nil, closed sets are written out where they are used.
type schemas map[string]Schema

func ref(name string) Schema { return Schema{"$ref": "#/components/schemas/" + name} }

// of returns the schema of a type.
func (all schemas) of(t reflect.Type) Schema {
	if set := closedSetOf(t); set != nil {
		values := Schema{"type": "string", "enum": set.values}
		if all == nil {
			return values
		}
		all[set.name] = values
		return ref(set.name)
	}
	switch t {
	case reflect.TypeFor[time.Time]():
		return Schema{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[decision.Value]():
		return Schema{}
	}
	switch t.Kind() {
	case reflect.Bool:
		return Schema{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return Schema{"type": "integer"}
	case reflect.Float64:
		return Schema{"type": "number"}
	case reflect.Pointer:
		return nullable(all.of(t.Elem()))
	case reflect.Slice:
		return Schema{"type": "array", "items": all.of(t.Elem())}
	case reflect.Map:
		return all.mapping(t)
	case reflect.Struct:
		return all.named(t)
	default:
		return Schema{"type": "string"}
	}
}

// mapping returns the schema of a map. If its keys are a closed set, all of them are required.
func (all schemas) mapping(t reflect.Type) Schema {
	value := all.of(t.Elem())
	set := closedSetOf(t.Key())
	if set == nil {
		return Schema{"type": "object", "additionalProperties": value}
	}
	each := map[string]Schema{}
	for _, name := range set.values {
		each[name.(string)] = value
	}
	return Schema{"type": "object", "additionalProperties": false, "properties": each, "required": set.values}
}

var pageOfType = regexp.MustCompile(`^Page\[.*\.(\w+)\]$`)

// named returns a reference to a struct's schema, which it adds if it is not there.
func (all schemas) named(t reflect.Type) Schema {
	name := pageOfType.ReplaceAllString(t.Name(), "${1}Page")
	name = strings.ToUpper(name[:1]) + name[1:]
	if all[name] == nil {
		all[name] = Schema{}
		all[name] = all.object(fieldsOf(t))
	}
	return ref(name)
}

// object returns the schema of an object with these members.
func (all schemas) object(members []*Field) Schema {
	each, required := map[string]Schema{}, []string{}
	for _, m := range members {
		each[m.Name] = all.field(m)
		if m.Required {
			required = append(required, m.Name)
		}
	}
	s := Schema{"type": "object", "additionalProperties": false, "properties": each}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// keywords holds a schema's keywords, by the struct tags that set them.
var keywords = map[string]string{"format": "format", "pattern": "pattern", "type": "type",
	"enum": "enum", "default": "default", "min": "minimum", "above": "exclusiveMinimum", "below": "exclusiveMaximum",
	"max": "maximum", "length": "maxLength", "items": "maxItems"}

// field returns the schema of a member or a parameter, with what its tags add.
func (all schemas) field(f *Field) Schema {
	var s Schema
	switch {
	case f.Members != nil:
		s = all.object(f.Members)
	case strings.HasSuffix(f.tag.Get("json"), ",string"): // a key of the engine, which JavaScript would round
		s = Schema{"type": "string", "pattern": `^-?[0-9]+$`}
	default:
		s = maps.Clone(all.of(f.of))
	}
	if f.Doc != "" {
		s["description"] = f.Doc
	}
	for tag, keyword := range keywords {
		if text, there := f.tag.Lookup(tag); there {
			s[keyword] = valueOf(tag, text)
		}
	}
	if values, listed := s["enum"].([]any); listed && f.of.Kind() == reflect.Pointer {
		s["enum"] = append(slices.Clone(values), nil)
	}
	if f.In == inBody && !f.Required {
		s = nullable(s)
	}
	return s
}

// valueOf returns the value that a struct tag gives to its keyword.
func valueOf(tag, text string) any {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n
	}
	switch list := strings.Split(text, ","); {
	case tag == "type" && len(list) > 1:
		return list
	case tag != "enum":
		return text
	default:
		values := make([]any, len(list))
		for i, v := range list {
			values[i] = v
		}
		return values
	}
}

// nullable returns a schema that allows null too.
func nullable(s Schema) Schema {
	kind, simple := s["type"].(string)
	switch s = maps.Clone(s); {
	case simple:
		s["type"] = []string{kind, "null"}
		if values, listed := s["enum"].([]any); listed {
			s["enum"] = append(slices.Clone(values), nil)
		}
	case s["$ref"] != nil:
		s["anyOf"] = []Schema{{"$ref": s["$ref"]}, {"type": "null"}}
		delete(s, "$ref")
	}
	return s
}
