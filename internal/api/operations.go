package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

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
	// conflicts may be answered 409; creates 201, too; closed needs no journal; rejects says 422 as a process would.
	conflicts, creates, closed, rejects bool
	// unsure is what is said where it is not known whether it was carried out.
	unsure string
	do     func(c *call) (any, error)
}

// op makes an operation of a handler: its request's fields and its answer are those of the handler's types.
func op[I, O any](
	method, path, id, summary string, do func(*call, *I) (O, error), more ...func(*Operation),
) *Operation {
	o := &Operation{ID: id, Method: method, Path: path, Summary: summary, Action: access.Read,
		Fields: requestFields(reflect.TypeFor[I](), ""), answer: reflect.TypeFor[O]()}
	o.do = func(c *call) (any, error) {
		in := new(I)
		if err := read(c.w, c.Request, o.Fields, reflect.ValueOf(in).Elem()); err != nil {
			return nil, err
		}
		return do(c, in)
	}
	for _, f := range more {
		f(o)
	}
	return o
}

func takes(a access.Action, unsure string) func(*Operation) {
	return func(o *Operation) { o.Action, o.unsure = a, unsure }
}
func says(detail string) func(*Operation) { return func(o *Operation) { o.Detail = detail } }
func conflicts(o *Operation)              { o.conflicts = true }
func creates(o *Operation)                { o.creates = true }
func closedToo(o *Operation)              { o.closed = true }

// The words after which what was asked for may have been done.
const (
	unsureDecision = "the decision was not recorded for sure; send it again: if it was, the answer is " +
		"invalid_retry_state with your name"
	unsureRun   = "that was not recorded for sure; the run says in which state it is"
	unsureOrder = "the order was not recorded for sure; see by GET whether it is followed, and give it again if not"
	unsureTold  = "whether this was recorded is not known; GET the cause to see what is taught of it"
)

const get, post = http.MethodGet, http.MethodPost

// tags are the parts of the API, with the operations of each.
func tags() []tag { return append(subjectTags(), otherTags()...) }

// subjectTags are those of one claim, and of what was given up of it.
func subjectTags() []tag {
	return []tag{
		{"decisions", "What would be decided; nothing is remembered.", []*Operation{
			op(post, "/decisions", "decide", "What would be decided on a failure (a dry run)", (*call).decide, closedToo,
				func(o *Operation) { o.rejects, o.answer = true, reflect.TypeFor[Decision]() }),
		}},
		{"subjects", "A claim, message or job, by policy and id.", []*Operation{
			op(get, "/subjects/{policy}/{id}", "showSubject", "State, attempts and next retry", (*call).subject),
			op(get, "/subjects/{policy}/{id}/audit", "auditSubject", "Its audit records in order, 100 a page", (*call).audit),
			op(post, "/subjects/{policy}/{id}/erase", "eraseSubject",
				"Erase its records and its name for good; digests and sums stay", (*call).erase, conflicts,
				takes(access.Erase, "whether the subject was erased is not known; ask again (once it was, the answer is "+
					"subject_not_found), or see the worker's log")),
			op(post, "/outcomes", "tellOutcome", "Tell how a retried claim ended; told twice it changes nothing",
				(*call).conclude, says("Where the claim has a dead letter this ends the case, and takes what a decision takes."),
				takes(access.Report, "the outcome was not recorded for sure; send it again: told twice it changes nothing")),
		}},
		{"dead letters", "What was given up, and waits for a person.", []*Operation{
			op(get, "/dead-letters", "listDeadLetters", "Dead letters, the newest first", (*call).deadLetters),
			op(get, "/dead-letters/groups", "listDeadLetterGroups", "Dead letters by their cause, the one with the most first",
				(*call).groups, says("Those with the same policy, reason and error, without what differs from case to case "+
					"(numbers, ids, dates), are one group. Its fingerprint chooses them in a list and in a bulk run.")),
			op(get, "/dead-letters/{id}", "showDeadLetter", "One dead letter", (*call).deadLetter),
			op(post, "/dead-letters/{id}/retry", "retryDeadLetter", "Send it again (fresh takes the role admin)",
				(*call).retry, conflicts, takes(access.Review, unsureDecision),
				says("The decision is recorded when this answers; the process gets it as soon as the engine takes it "+
					"(`delivery`: `pending`, then `taken` or `nobody`).")),
			op(post, "/dead-letters/{id}/discard", "discardDeadLetter", "Let it go", (*call).discard, conflicts,
				takes(access.Review, unsureDecision)),
			op(post, "/dead-letters/{id}/accept", "acceptDeadLetter", "Close it as what the portal has already (R33)",
				(*call).accept, conflicts, takes(access.Review, unsureDecision),
				says("Only where its `accepts` is true: the process must know what to do with that answer. It is no success of a "+
					"retry, and counts in no figure of theirs.")),
			op(post, "/jobs/retry", "retryFailedJob", "Retry Failed Job; jobId is the dead letter's id", (*call).retryJob,
				conflicts, takes(access.Review, unsureDecision), says("As retryDeadLetter, after the policy's backoff.")),
		}},
	}
}

// otherTags are those of many claims.
func otherTags() []tag {
	steered := takes(access.Bulk, unsureRun)
	return []tag{
		{"bulk runs", "One decision on many dead letters, planned first, carried out at a pace, verified one by one.",
			[]*Operation{
				op(post, "/bulk-runs/plan", "planBulkRun", "What a bulk run would do, before anything happens", (*call).planBulk,
					says("Counts the open dead letters that the filter lets through, and says which would be refused and why. It "+
						"changes nothing. Its token starts just this: the very same command, as long as the same dead letters are "+
						"still there.")),
				op(post, "/bulk-runs", "startBulkRun", "Start what was planned (of all teams, or fresh, role admin)",
					(*call).startBulk, conflicts, creates,
					takes(access.Bulk, "the run was not started for sure; send it again: if it was, the answer is that run"),
					says("The run is recorded when this answers, and goes on by itself: one dead letter after the other, at its "+
						"pace. What dies after the plan is not part of it. A token starts one run: used again, it answers with that "+
						"run (200). So where it is not known whether this was carried out (503, no answer), send it again.")),
				op(get, "/bulk-runs", "listBulkRuns", "Bulk runs, the newest first", (*call).bulkRuns),
				op(get, "/bulk-runs/{id}", "showBulkRun", "One bulk run, and what became of its dead letters", (*call).bulkRun),
				op(get, "/bulk-runs/{id}/items", "listBulkItems", "A bulk run's dead letters in order", (*call).bulkItems),
				op(post, "/bulk-runs/{id}/pause", "pauseBulkRun", "Decide nothing more until it is resumed",
					steerBy(journal.BulkPause), steered, conflicts),
				op(post, "/bulk-runs/{id}/resume", "resumeBulkRun", "Go on after a pause, at its pace",
					steerBy(journal.BulkResume), steered, conflicts),
				op(post, "/bulk-runs/{id}/cancel", "cancelBulkRun", "End it; what is not decided yet stays as it is",
					steerBy(journal.BulkCancel), steered, conflicts),
			}},
		{"causes", "What failures have in common, and what people taught of it.", []*Operation{
			op(get, "/causes", "listCauses", "Causes of failures, the one with the most first", (*call).causes),
			op(get, "/causes/{id}", "showCause", "One cause, with what a person taught of it", (*call).cause),
			op(post, "/causes/{id}/teach", "teachCause", "Teach that it is permanent, for a team to act, or transient",
				(*call).teach, takes(access.Teach, unsureTold), says("Holds for what is decided from then on, in place of what "+
					"was taught before; evidence of rank 1 to 3 stays above it.")),
			op(http.MethodDelete, "/causes/{id}/teach", "forgetCause", "Take back what was taught of it", (*call).forget,
				conflicts, takes(access.Teach, unsureTold)),
		}},
		{"destinations", "Where claims are submitted; those of one that is down wait at its gate.", []*Operation{
			op(get, "/destinations", "listDestinations", "All destinations that are configured or that claims went to",
				(*call).destinations),
			op(get, "/destinations/{name}", "showDestination", "One with the claims whose turn is next", (*call).destination),
			op(post, "/destinations/{name}/hold", "holdDestination", "Hold all claims until a time, at most 7 days ahead",
				(*call).hold, takes(access.Order, unsureOrder), says("It counts as down until then; then a claim is sent ahead.")),
			op(post, "/destinations/{name}/probe", "probeDestination", "Send one claim ahead now", (*call).probe,
				takes(access.Order, unsureOrder), says("Where it is down and none is on its way. Success lets the others follow "+
					"at a growing pace.")),
			op(post, "/destinations/{name}/release", "releaseDestination",
				"Let the claims go at a pace, or treat it as up until a time", (*call).release, takes(access.Order, unsureOrder),
				says("With `perMinute` that pace holds until nobody waits or a submission fails; with `until`, at most 7 days "+
					"ahead, all pass whatever fails.")),
		}},
		{"figures", "The figures of the rules, with their targets.", []*Operation{
			op(get, "/kpis", "listKPIs", "Each policy's figures, their targets and whether they are met", (*call).kpis),
		}},
		{"description", "The API itself.", []*Operation{
			op(get, "/openapi.json", "describe", "This description, OpenAPI 3.1", (*call).describe, closedToo),
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
	forbidden_host forbidden_origin forbidden_role forbidden_team force_required internal_error invalid_action invalid_at
	invalid_authorization invalid_claim_id invalid_classification invalid_context invalid_cursor invalid_filter
	invalid_fingerprint invalid_force_retry invalid_fresh invalid_id invalid_ids invalid_job_id invalid_json invalid_limit
	invalid_now invalid_outcome invalid_pace invalid_parameter invalid_period invalid_plan invalid_policy invalid_q
	invalid_query invalid_reason invalid_retry_outcome invalid_retry_state invalid_run_state invalid_since invalid_sort
	invalid_state invalid_submission_deadline invalid_taught invalid_team invalid_tenant invalid_until invalid_variables
	invalid_protocol_number invalid_when job_not_found journal_unavailable login_required max_retries_exceeded
	method_not_allowed not_found nothing_taught nothing_to_do plan_outdated policy_not_found reason_required reason_too_long run_not_found
	sessions_unavailable subject_busy subject_not_found token_expired token_unknown too_many_attempts too_many_changes
	unknown_field unknown_parameter unknown_policy unknown_variable unrecordable unsupported_media_type`)

// Refusals are the answers that carry nothing out.
var Refusals = map[int]string{
	http.StatusBadRequest: "The body is no JSON object (`invalid_json`), or the Authorization header is not " +
		"understood (`invalid_authorization`).",
	http.StatusUnauthorized: "Nobody is logged in (`login_required`), or the token is none (`token_unknown`) or no " +
		"longer one (`token_expired`).",
	http.StatusForbidden: "The role does not allow it (`forbidden_role`), or the teams that the token is bound to " +
		"(`forbidden_team`); another site's page asks for a change (`forbidden_origin`); or, without tokens, the server " +
		"was asked under a name that is not this machine's own (`forbidden_host`).",
	http.StatusNotFound: "What the address names is not known (`…_not_found`); a subject may be erased or purged.",
	http.StatusConflict: "It cannot be done as things stand: the limit is reached and forceRetry is not set " +
		"(`max_retries_exceeded`), it would be sent after its deadline (`deadline_missed`; a new submissionDeadline works " +
		"too), it was decided on before, with who and when in the message, or no process waits " +
		"(`invalid_retry_state`), its policy is gone, so that there is no backoff (`policy_not_found`; `when: now` " +
		"works); what is there is no longer what was planned (`plan_outdated`), the run's state does not allow that " +
		"(`invalid_run_state`); nothing was taught (`nothing_taught`); or something is still to be done about the " +
		"subject (`subject_busy`).",
	http.StatusRequestEntityTooLarge: "The body has more than 64 KiB (`body_too_large`).",
	http.StatusUnsupportedMediaType:  "The body is not sent as `application/json` in UTF-8 (`unsupported_media_type`).",
	http.StatusUnprocessableEntity: "A parameter or a field makes no sense; the code says which (`invalid_…`, " +
		"`unknown_…`, `reason_required`, `force_required`), the filter finds nothing that could be decided " +
		"(`nothing_to_do`), or the journal can never hold it (`unrecordable`).",
	http.StatusTooManyRequests: "Too many wrong tokens came from there (`too_many_attempts`), or more changes than " +
		"people make (`too_many_changes`). Retry-After says how many seconds to wait.",
	http.StatusInternalServerError: "A mistake of the worker's own (`internal_error`); its log says where.",
	http.StatusServiceUnavailable: "The journal is not open yet, or cannot be read or written now " +
		"(`journal_unavailable`; `sessions_unavailable` where a session cannot be looked up). Asking again is safe.",
}

// statuses that an operation is refused with.
func (o *Operation) statuses() []int {
	all := []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity,
		http.StatusTooManyRequests, http.StatusInternalServerError}
	if o.Method != http.MethodGet {
		all = append(all, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	if strings.Contains(o.Path, "{") || slices.ContainsFunc(o.Fields, func(f *Field) bool { return f.Name == "jobId" }) ||
		o.ID == "tellOutcome" {
		all = append(all, http.StatusNotFound)
	}
	if o.conflicts {
		all = append(all, http.StatusConflict)
	}
	if !o.closed {
		all = append(all, http.StatusServiceUnavailable)
	}
	return all
}

type object = map[string]any

func jsonOf(s Schema) object { return object{"application/json": object{"schema": s}} }

// Document returns the description as OpenAPI 3.1.
func Document() json.RawMessage {
	components, paths, described := schemas{}, map[string]object{}, []object{}
	components["Error"] = Schema{"type": "object", "additionalProperties": false,
		"required": []string{"error", "message"}, "properties": object{
			"error": Schema{"type": "string", "enum": errorCodes}, "message": Schema{"type": "string", "minLength": 1}}}
	for _, t := range tags() {
		described = append(described, object{"name": t.name, "description": t.says})
	}
	for _, o := range Description() {
		if paths[Root+o.Path] == nil {
			paths[Root+o.Path] = object{}
		}
		paths[Root+o.Path][strings.ToLower(o.Method)] = o.document(components)
	}
	responses := object{}
	for status, says := range Refusals {
		responses[strconv.Itoa(status)] = object{"description": says, "content": jsonOf(ref("Error"))}
	}
	text, err := json.Marshal(object{
		"openapi": "3.1.0",
		"info": object{"title": "retry-worker", "version": "v1", "description": About,
			"summary": "What became of failed submissions, and people's decisions on those that were given up."},
		"servers": []object{{"url": "/"}}, "tags": described, "paths": paths,
		"security": []object{{"token": []string{}}, {"session": []string{}}, {}},
		"components": object{"schemas": components, "responses": responses, "securitySchemes": object{
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
	done := object{"description": "What was asked for, or how things stand after it.",
		"content": jsonOf(components.of(o.answer))}
	answers := object{"200": done}
	if o.creates {
		created := maps.Clone(done)
		created["headers"] = object{"Location": object{"description": "Its address.", "schema": Schema{"type": "string"}}}
		answers["201"] = created
	}
	for _, status := range o.statuses() {
		answers[strconv.Itoa(status)] = object{"$ref": "#/components/responses/" + strconv.Itoa(status)}
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
