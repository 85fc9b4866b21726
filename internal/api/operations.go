package api

import (
	_ "embed" // operations.txt, about.txt, refusals.txt
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"retry-worker/internal/access"
	"retry-worker/internal/journal"
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
	do     func(w http.ResponseWriter, c *call) (any, error)
}

//go:embed operations.txt
var operationsText string

// said returns the summary and the details of each operation, by its id.
var said = sync.OnceValue(func() map[string]string { return pairsOf(operationsText) })

// op returns an operation that do carries out. I holds the request's fields, O is the answer.
func op[I, O any](takes access.Action, request, id string, do func(*call, *I) (O, error)) *Operation {
	method, path, _ := strings.Cut(request, " ")
	summary, detail, _ := strings.Cut(said()[id], ". ")
	o := &Operation{ID: id, Method: method, Path: path, Summary: summary, Detail: detail, Action: takes,
		Fields: requestFields(reflect.TypeFor[I](), method), answer: reflect.TypeFor[O]()}
	o.do = func(w http.ResponseWriter, c *call) (any, error) {
		in := new(I)
		if err := read(w, c.Request, o.Fields, in); err != nil {
			return nil, err
		}
		return do(c, in)
	}
	return o
}

// tags returns the parts of the API, with the operations of each.
func tags() []tag {
	return []tag{
		{"decisions", "What would be decided; nothing is remembered.", []*Operation{
			op(access.Read, "POST /decisions", "decide", (*call).decide),
		}},
		{"subjects", "A claim, message or job, by policy and id.", []*Operation{
			op(access.Read, "GET /subjects/{policy}/{id}", "showSubject", (*call).subject),
			op(access.Read, "GET /subjects/{policy}/{id}/audit", "auditSubject", (*call).audit),
			op(access.Erase, "POST /subjects/{policy}/{id}/erase", "eraseSubject", (*call).erase),
			op(access.Report, "POST /outcomes", "tellOutcome", (*call).conclude),
		}},
		{"dead letters", "What was given up, and waits for a person.", []*Operation{
			op(access.Read, "GET /dead-letters", "listDeadLetters", (*call).deadLetters),
			op(access.Read, "GET /dead-letters/groups", "listDeadLetterGroups", (*call).groups),
			op(access.Read, "GET /dead-letters/{id}", "showDeadLetter", (*call).deadLetter),
			op(access.Review, "POST /dead-letters/{id}/retry", "retryDeadLetter", (*call).retry),
			op(access.Review, "POST /dead-letters/{id}/discard", "discardDeadLetter", (*call).discard),
			op(access.Review, "POST /dead-letters/{id}/accept", "acceptDeadLetter", (*call).accept),
			op(access.Review, "PUT /dead-letters/{id}/assignment", "assignDeadLetter", (*call).assign),
			op(access.Handover, "PUT /assignees/{name}", "handOver", (*call).handover),
			op(access.Review, "POST /jobs/retry", "retryFailedJob", (*call).retryJob),
		}},
		{"bulk runs", "One decision on many dead letters, planned first, carried out at a pace, verified one by one.",
			[]*Operation{
				op(access.Read, "POST /bulk-runs/plan", "planBulkRun", (*call).planBulk),
				op(access.Bulk, "POST /bulk-runs", "startBulkRun", (*call).startBulk),
				op(access.Read, "GET /bulk-runs", "listBulkRuns", (*call).bulkRuns),
				op(access.Read, "GET /bulk-runs/{id}", "showBulkRun", (*call).bulkRun),
				op(access.Read, "GET /bulk-runs/{id}/items", "listBulkItems", (*call).bulkItems),
				op(access.Bulk, "POST /bulk-runs/{id}/pause", "pauseBulkRun", steerBy(journal.BulkPause)),
				op(access.Bulk, "POST /bulk-runs/{id}/resume", "resumeBulkRun", steerBy(journal.BulkResume)),
				op(access.Bulk, "POST /bulk-runs/{id}/cancel", "cancelBulkRun", steerBy(journal.BulkCancel)),
			}},
		{"causes", "What failures have in common, and what people taught of it.", []*Operation{
			op(access.Read, "GET /causes", "listCauses", (*call).causes),
			op(access.Read, "GET /causes/{id}", "showCause", (*call).cause),
			op(access.Teach, "POST /causes/{id}/teach", "teachCause", (*call).teach),
			op(access.Teach, "DELETE /causes/{id}/teach", "forgetCause", (*call).forget),
		}},
		{"destinations", "Where claims are submitted; those of one that is down wait at its gate.", []*Operation{
			op(access.Read, "GET /destinations", "listDestinations", (*call).destinations),
			op(access.Read, "GET /destinations/{name}", "showDestination", (*call).destination),
			op(access.Order, "POST /destinations/{name}/hold", "holdDestination", (*call).hold),
			op(access.Order, "POST /destinations/{name}/probe", "probeDestination", (*call).probe),
			op(access.Order, "POST /destinations/{name}/release", "releaseDestination", (*call).release),
		}},
		{"description", "The API itself.", []*Operation{
			op(access.Read, "GET /openapi.json", "describe", (*call).describe),
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

//go:embed refusals.txt
var refusalsText string

// Refusals returns, by status, why requests are not carried out.
var Refusals = sync.OnceValue(func() map[string]string { return pairsOf(refusalsText) })

type object = map[string]any

func jsonOf(s Schema) object { return object{"application/json": object{"schema": s}} }

// Document returns the description as OpenAPI 3.1.
func Document() json.RawMessage {
	components, paths, described := schemas{}, map[string]object{}, []object{}
	failure := components.object(fieldsOf(reflect.TypeFor[Failure]()))
	failure["properties"].(map[string]Schema)["error"]["enum"] = slices.Sorted(maps.Keys(statuses()))
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
	text, err := json.Marshal(object{
		"openapi": "3.1.0",
		"info": object{"title": "retry-worker", "version": "v1", "description": About,
			"summary": "What became of failed submissions, and people's decisions on those that were given up."},
		"servers": []object{{"url": "/"}}, "tags": described, "paths": paths,
		"security": []object{{"token": []string{}}, {"session": []string{}}, {}},
		"components": object{"schemas": components, "responses": object{"Refused": object{"description": says,
			"content": jsonOf(ref("Error"))}}, "securitySchemes": object{
			"token": object{"type": "http", "scheme": "bearer", "description": "A token of the tokens file."},
			"session": object{"type": "apiKey", "in": "cookie", "name": "retry-worker-session",
				"description": "The browser's log-in; over TLS the cookie's name begins with `__Host-`."},
		}},
	})
	if err != nil {
		panic(err) // cannot be: it holds texts and numbers
	}
	return text
}

// document returns the description of one operation.
func (o *Operation) document(components schemas) object {
	answers := object{
		"200": object{"description": "What was asked for, or how things stand after it.",
			"content": jsonOf(components.of(o.answer))},
		"default": object{"$ref": "#/components/responses/Refused"},
	}
	if o.answer == reflect.TypeFor[Decision]() {
		answers["422"] = object{"description": "A process would have an incident, or the request makes no sense.",
			"content": jsonOf(Schema{"anyOf": []Schema{components.of(reflect.TypeFor[Rejection]()), ref("Error")}})}
	}
	doc := object{"operationId": o.ID, "tags": []string{o.Tag}, "responses": answers,
		"summary": o.Summary + " (role " + o.Action.Least().String() + ")"}
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
