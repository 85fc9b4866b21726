package api

import (
	_ "embed" // refusals.txt
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

// Root of every address.
const Root = "/api/v1"

// Operation is one request of the API, as its description has it.
type Operation struct {
	ID, Method, Path string // Path without Root
	Tag              string
	Summary, Detail  string
	Action           access.Action
	Fields           []*Field

	answer reflect.Type
	// closed needs no journal; rejects says 422 as a process would.
	closed, rejects bool

	do func(w http.ResponseWriter, c *call) (any, error)
}

// op returns the operation of a handler, whose types are those of its request's fields and of its answer.
func op[I, O any](
	takes access.Action, request, id, summary string, do func(*call, *I) (O, error), detail ...string,
) *Operation {
	method, path, _ := strings.Cut(request, " ")
	o := &Operation{ID: id, Method: method, Path: path, Summary: summary, Detail: strings.Join(detail, " "), Action: takes,
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

// withoutJournal has the operation answer before the journal is open, too.
func (o *Operation) withoutJournal() *Operation {
	o.closed = true
	return o
}

// deciding has the operation answer with a decision, or with 422 as a process would have an incident.
func (o *Operation) deciding() *Operation {
	o.rejects, o.answer = true, reflect.TypeFor[Decision]()
	return o
}

// tags are the parts of the API, with the operations of each.
func tags() []tag { return append(subjectTags(), otherTags()...) }

// subjectTags are those of one claim, and of what was given up of it.
func subjectTags() []tag {
	return []tag{
		{"decisions", "What would be decided; nothing is remembered.", []*Operation{
			op(access.Read, "POST /decisions", "decide", "What would be decided on a failure (a dry run)", (*call).decide).
				withoutJournal().deciding(),
		}},
		{"subjects", "A claim, message or job, by policy and id.", []*Operation{
			op(access.Read, "GET /subjects/{policy}/{id}", "showSubject", "State, attempts and next retry", (*call).subject),
			op(access.Read, "GET /subjects/{policy}/{id}/audit", "auditSubject", "Its audit records in order, 100 a page",
				(*call).audit),
			op(access.Erase, "POST /subjects/{policy}/{id}/erase", "eraseSubject",
				"Erase its records and its name for good; digests and sums stay", (*call).erase),
			op(access.Report, "POST /outcomes", "tellOutcome", "Tell how a retried claim ended; told twice it changes nothing",
				(*call).conclude,
				"Where the claim has a dead letter this ends the case, and takes what a decision takes."),
		}},
		{"dead letters", "What was given up, and waits for a person.", []*Operation{
			op(access.Read, "GET /dead-letters", "listDeadLetters", "Dead letters, the most urgent first", (*call).deadLetters),
			op(access.Read, "GET /dead-letters/groups", "listDeadLetterGroups",
				"Dead letters by their cause, the one with the most first", (*call).groups,
				"Those with the same policy, reason and error, without what differs from case to case (numbers, ids, dates), are "+
					"one group. Its fingerprint chooses them in a list and in a bulk run."),
			op(access.Read, "GET /dead-letters/{id}", "showDeadLetter", "One dead letter", (*call).deadLetter),
			op(access.Review, "POST /dead-letters/{id}/retry", "retryDeadLetter", "Send it again (fresh takes the role admin)",
				(*call).retry, "Recorded when this answers; `delivery` to the process is `pending`, then `taken` or `nobody`."),
			op(access.Review, "POST /dead-letters/{id}/discard", "discardDeadLetter", "Let it go", (*call).discard),
			op(access.Review, "POST /dead-letters/{id}/accept", "acceptDeadLetter", "Close it as what the portal has already (R33)",
				(*call).accept, "Only where its `accepts` is true: the process must know what to do with that answer. It is no "+
					"success of a retry, and counts in no figure of theirs."),
			op(access.Review, "PUT /dead-letters/{id}/assignment", "assignDeadLetter", "Say who has it (R35); that binds nobody",
				(*call).assign),
			op(access.Handover, "PUT /assignees/{name}", "handOver", "Give all that somebody has to another, or back",
				(*call).handover),
			op(access.Review, "POST /jobs/retry", "retryFailedJob", "Retry Failed Job; jobId is the dead letter's id",
				(*call).retryJob, "As retryDeadLetter, after the policy's backoff."),
		}},
	}
}

// otherTags are those of many claims.
func otherTags() []tag {
	return []tag{
		{"bulk runs", "One decision on many dead letters, planned first, carried out at a pace, verified one by one.",
			[]*Operation{
				op(access.Read, "POST /bulk-runs/plan", "planBulkRun", "What a bulk run would do, before anything happens",
					(*call).planBulk, "Counts the open dead letters that the filter lets through, and says which would be refused "+
						"and why. Its token starts just this: the very same command, as long as the same dead "+
						"letters are still there."),
				op(access.Bulk, "POST /bulk-runs", "startBulkRun", "Start what was planned (of all teams, or fresh, role admin)",
					(*call).startBulk, "The run is recorded when this answers, and goes on by itself, at its pace. "+
						"What is given up later is no part of it. A token starts one run: used again, it "+
						"answers with that run. If you do not know whether it was carried out (503, no answer), send it again."),
				op(access.Read, "GET /bulk-runs", "listBulkRuns", "Bulk runs, the newest first", (*call).bulkRuns),
				op(access.Read, "GET /bulk-runs/{id}", "showBulkRun", "One bulk run, and what became of its dead letters",
					(*call).bulkRun),
				op(access.Read, "GET /bulk-runs/{id}/items", "listBulkItems", "A bulk run's dead letters in order",
					(*call).bulkItems),
				op(access.Bulk, "POST /bulk-runs/{id}/pause", "pauseBulkRun", "Decide nothing more until it is resumed",
					steerBy(journal.BulkPause)),
				op(access.Bulk, "POST /bulk-runs/{id}/resume", "resumeBulkRun", "Go on after a pause, at its pace",
					steerBy(journal.BulkResume)),
				op(access.Bulk, "POST /bulk-runs/{id}/cancel", "cancelBulkRun", "End it; what is not decided yet stays as it is",
					steerBy(journal.BulkCancel)),
			}},
		{"causes", "What failures have in common, and what people taught of it.", []*Operation{
			op(access.Read, "GET /causes", "listCauses", "Causes of failures, the one with the most first", (*call).causes),
			op(access.Read, "GET /causes/{id}", "showCause", "One cause, with what a person taught of it", (*call).cause),
			op(access.Teach, "POST /causes/{id}/teach", "teachCause",
				"Teach that it is permanent, for a team to act, or transient", (*call).teach,
				"Holds for what is decided from then on, in place of what was taught before; evidence of rank 1 to 3 stays "+
					"above it."),
			op(access.Teach, "DELETE /causes/{id}/teach", "forgetCause", "Take back what was taught of it", (*call).forget),
		}},
		{"destinations", "Where claims are submitted; those of one that is down wait at its gate.", []*Operation{
			op(access.Read, "GET /destinations", "listDestinations",
				"All destinations that are configured or that claims went to", (*call).destinations),
			op(access.Read, "GET /destinations/{name}", "showDestination", "One with the claims whose turn is next",
				(*call).destination),
			op(access.Order, "POST /destinations/{name}/hold", "holdDestination",
				"Hold all claims until a time, at most 7 days ahead", (*call).hold,
				"It counts as down until then; then a claim is sent ahead."),
			op(access.Order, "POST /destinations/{name}/probe", "probeDestination", "Send one claim ahead now", (*call).probe,
				"Where it is down and none is on its way. Success lets the others follow at a growing pace."),
			op(access.Order, "POST /destinations/{name}/release", "releaseDestination",
				"Let the claims go at a pace, or treat it as up until a time", (*call).release,
				"With `perMinute` that pace holds until nobody waits or a submission fails; with `until`, at most 7 days ahead, "+
					"all pass whatever fails."),
		}},
		{"description", "The API itself.", []*Operation{
			op(access.Read, "GET /openapi.json", "describe", "This description, OpenAPI 3.1", (*call).describe).
				withoutJournal(),
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
			o.Tag = t.name
			all = append(all, o)
		}
	}
	return all
}

// About is what the description says of the whole.
const About = "Answers are JSON in UTF-8; every error is `{\"error\", \"message\"}`, `error` of a closed set, " +
	"`message` one English line that says what to do. Texts of errors come from outside systems: personal data was taken " +
	"out of them, and characters that a terminal, an editor or a browser acts on are written as `\\u` escapes. Keys of the " +
	"engine are texts, since JavaScript would lose their last digits. Instants are RFC 3339 in UTC.\n\nEach GET may be " +
	"asked by HEAD too. Ids in a path are percent-encoded, a slash as `%2F`, an id that is `..` as `%2E%2E`. Parameters " +
	"and fields that are not known are refused, and so is one that is given twice.\n\nWho asks: with a tokens file, " +
	"`Authorization: Bearer TOKEN` (`retry-worker token new`), or the browser's session; without one everybody on the " +
	"same machine. What a person did is recorded under the name that was logged in with."

// errorCodes are all that an error can have.
var errorCodes = strings.Fields(`body_too_large cause_not_found deadline_missed destination_not_found duplicate_field
	forbidden_host forbidden_origin forbidden_role forbidden_team force_required internal_error invalid_action invalid_assignee invalid_at
	invalid_authorization invalid_claim_id invalid_classification invalid_context invalid_cursor invalid_filter
	invalid_fingerprint invalid_follow_up invalid_follow_up_at invalid_force_retry invalid_fresh invalid_id invalid_ids invalid_job_id invalid_json invalid_limit
	invalid_now invalid_outcome invalid_pace invalid_parameter invalid_period invalid_plan invalid_policy invalid_q
	invalid_query invalid_reason invalid_retry_outcome invalid_retry_state invalid_run_state invalid_since invalid_sort
	invalid_state invalid_submission_deadline invalid_taught invalid_team invalid_tenant invalid_until invalid_variables
	invalid_protocol_number invalid_when job_not_found journal_unavailable login_required max_retries_exceeded
	method_not_allowed not_found nothing_taught nothing_to_do plan_outdated policy_not_found reason_required reason_too_long run_not_found
	sessions_unavailable subject_busy subject_not_found token_expired token_unknown too_many_attempts too_many_changes
	unknown_field unknown_parameter unknown_policy unknown_variable unrecordable unsupported_media_type`)

//go:embed refusals.txt
var refusalsText string

// Refusals say, by status, why a request is not carried out.
var Refusals = sync.OnceValue(func() map[string]string { return pairsOf(refusalsText) })

type object = map[string]any

func jsonOf(s Schema) object { return object{"application/json": object{"schema": s}} }

// Document returns the description as OpenAPI 3.1.
func Document() json.RawMessage {
	components, paths, described := schemas{}, map[string]object{}, []object{}
	failure := components.object(fieldsOf(reflect.TypeFor[Failure]()))
	failure["properties"].(map[string]Schema)["error"]["enum"] = errorCodes
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

// document describes one operation.
func (o *Operation) document(components schemas) object {
	answers := object{
		"200": object{"description": "What was asked for, or how things stand after it.",
			"content": jsonOf(components.of(o.answer))},
		"default": object{"$ref": "#/components/responses/Refused"},
	}
	if o.rejects {
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
