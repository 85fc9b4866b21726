package api

import (
	"embed"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
)

// Root begins every path.
const Root = "/api/v1"

// Operation describes one request of the API.
type Operation struct {
	ID, Method, Path string // Path without Root
	Tag              string
	Summary, Detail  string
	Action           access.Action
	Fields           []*Field

	answer reflect.Type
	early  bool // it answers before the journal is open
	do     func(*call) (any, error)
}

// texts holds what the API says, in files with lines such as `name: description`, and what openapi.json says of all.
//
//go:embed operations.txt words.txt codes.txt refusals.txt openapi.json
var texts embed.FS

// pairs returns a function that returns the lines of a file by their names.
func pairs(file string) func() map[string]string {
	return sync.OnceValue(func() map[string]string {
		all := map[string]string{}
		content, _ := texts.ReadFile(file) // a test reads each
		for line := range strings.Lines(string(content)) {
			name, says, _ := strings.Cut(strings.TrimSpace(line), ": ")
			all[name] = says
		}
		return all
	})
}

var (
	said  = pairs("operations.txt") // the summary and the details of each operation, by its id
	words = pairs("words.txt")      // the description of fields that have no doc tag, by their names
	codes = pairs("codes.txt")      // the HTTP status of each error code
	// Refusals returns, by status, why requests are not carried out.
	Refusals = pairs("refusals.txt")
)

// op returns an operation that do carries out. I holds the request's fields, O is the answer.
func op[I, O any](takes access.Action, request, id string, do func(*call, *I) (O, error)) *Operation {
	method, path, _ := strings.Cut(request, " ")
	summary, detail, _ := strings.Cut(said()[id], ". ")
	o := &Operation{ID: id, Method: method, Path: path, Summary: summary, Detail: detail, Action: takes,
		Fields: requestFields(reflect.TypeFor[I](), method), answer: reflect.TypeFor[O]()}
	o.do = func(c *call) (any, error) {
		in := new(I)
		if err := read(c.Request, o.Fields, in); err != nil {
			return nil, err
		}
		return do(c, in)
	}
	return o
}

// tags returns the parts of the API, with the operations of each.
func tags() []tag {
	return []tag{
		{"decisions", "What would be decided; nothing is remembered.", decisions},
		{"subjects", "A claim, message or job, by policy and id.", subjects},
		{"dead letters", "What was given up, and waits for a person.", deadLetters},
		{"bulk runs", "One decision on many dead letters, planned first, carried out at a pace, verified one by one.",
			bulkRuns},
		{"causes", "What failures have in common, and what people taught of it.", causes},
		{"destinations", "Where claims are submitted; those of one that is down wait at its gate.", destinations},
		{"description", "The API itself.", []*Operation{
			op(access.Read, "GET /openapi.json", "describe", func(*call, *struct{}) (json.RawMessage, error) {
				return Document(), nil
			}),
		}},
	}
}

type tag struct {
	name, says string
	operations []*Operation
}

// Description returns every operation of the API.
func Description() (all []*Operation) {
	for _, t := range tags() {
		for _, o := range t.operations {
			o.Tag, o.early = t.name, t.name == "decisions" || t.name == "description" // neither needs the journal
			all = append(all, o)
		}
	}
	return all
}

//go:embed about.txt
var aboutText string

// About describes the API as a whole.
var About = strings.TrimSpace(aboutText)

type object = map[string]any

func jsonOf(s Schema) object { return object{"application/json": object{"schema": s}} }

// Document returns the description as OpenAPI 3.1.
func Document() json.RawMessage {
	components, paths, described := schemas{}, map[string]object{}, []object{}
	failure := components.object(fieldsOf(reflect.TypeFor[access.Refusal]()))
	failure["properties"].(map[string]Schema)["error"]["enum"] = slices.Sorted(maps.Keys(codes()))
	components["Error"] = failure
	for _, t := range tags() {
		described = append(described, object{"name": t.name, "description": t.says})
	}
	for _, o := range Description() {
		if paths[Root+o.Path] == nil {
			paths[Root+o.Path] = object{}
		}
		paths[Root+o.Path][strings.ToLower(o.Method)] = o.document(components)
	}
	says := "Why it was not carried out."
	for _, status := range slices.Sorted(maps.Keys(Refusals())) {
		says += "\n\n" + status + ": " + Refusals()[status]
	}
	doc := object{}
	head, _ := texts.ReadFile("openapi.json") // a test reads each
	_ = json.Unmarshal(head, &doc)
	doc["tags"], doc["paths"], doc["info"].(object)["description"] = described, paths, About
	parts := doc["components"].(object)
	parts["schemas"], parts["responses"].(object)["Refused"].(object)["description"] = components, says
	return text.JSON(doc)
}

// document returns the description of one operation.
func (o *Operation) document(components schemas) object {
	answers := object{
		"200": object{"description": "What was asked for, or how things stand after it.",
			"content": jsonOf(components.of(o.answer))},
		"default": object{"$ref": "#/components/responses/Refused"},
	}
	if o.ID == "decide" {
		answers["422"] = object{"description": "A process would have an incident, or the request makes no sense.",
			"content": jsonOf(Schema{"anyOf": []Schema{components.of(reflect.TypeFor[Rejection]()), ref("Error")}})}
	}
	doc := object{"operationId": o.ID, "tags": []string{o.Tag}, "responses": answers,
		"summary": o.Summary + " (role " + string(o.Action.Least()) + ")"}
	if o.Detail != "" {
		doc["description"] = o.Detail
	}
	var parameters []object
	for _, f := range o.Fields {
		if f.In != inBody {
			parameters = append(parameters,
				object{"name": f.Name, "in": f.In, "required": f.Required, "schema": components.field(f)})
		}
	}
	if parameters != nil {
		doc["parameters"] = parameters
	}
	if o.Method != http.MethodGet {
		members := slices.DeleteFunc(slices.Clone(o.Fields), func(f *Field) bool { return f.In != inBody })
		doc["requestBody"] = object{"required": true, "content": jsonOf(components.object(members))}
	}
	return doc
}

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
	return closedSet{reflect.TypeFor[T](), name, journal.Views(values, func(v *T) any { return string(*v) })}
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
	case reflect.Slice:
		return Schema{"type": "array", "items": all.of(t.Elem())}
	case reflect.Map:
		return all.mapping(t)
	case reflect.Struct:
		return all.named(t)
	default:
		return Schema{"type": kinds[t.Kind()]}
	}
}

// kinds holds the types of JSON by Go's.
var kinds = map[reflect.Kind]string{reflect.Bool: "boolean", reflect.Int: "integer", reflect.Int64: "integer",
	reflect.Float64: "number", reflect.String: "string"}

// mapping returns the schema of a map. If its keys are a closed set, all of them are required.
func (all schemas) mapping(t reflect.Type) Schema {
	set := closedSetOf(t.Key())
	if set == nil {
		return Schema{"type": "object", "additionalProperties": all.of(t.Elem())}
	}
	var each []*Field
	for _, name := range set.values {
		each = append(each, &Field{Name: name.(string), Required: true, of: t.Elem()})
	}
	return all.object(each)
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
	of, pointer := f.of, f.of.Kind() == reflect.Pointer
	if pointer {
		of = of.Elem()
	}
	switch {
	case f.Members != nil:
		s = all.object(f.Members)
	case strings.HasSuffix(f.tag.Get("json"), ",string"): // a key of the engine, which JavaScript would round
		s = Schema{"type": "string", "pattern": `^-?[0-9]+$`}
	default:
		s = maps.Clone(all.of(of))
	}
	if f.Doc != "" {
		s["description"] = f.Doc
	}
	for tag, keyword := range keywords {
		if text, there := f.tag.Lookup(tag); there {
			s[keyword] = valueOf(tag, text)
		}
	}
	if pointer || f.In == inBody && !f.Required {
		s = nullable(s)
	}
	return s
}

// valueOf returns the value that a struct tag gives to its keyword.
func valueOf(tag, text string) any {
	list := strings.Split(text, ",")
	if tag == "enum" || tag == "type" && len(list) > 1 {
		return journal.Views(list, func(v *string) any { return *v })
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n
	}
	return text
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
