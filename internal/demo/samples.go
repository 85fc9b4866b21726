package demo

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"retry-worker/internal/worker"
)

// Process is one bundled process and the outside system that it talks to, which the demo plays.
type Process struct {
	// ID of the model.
	ID string
	// SampleID is the pattern of its samples' ids, whose number differs from run to run.
	SampleID string
	// Subjects are what its samples are called, and System is who is played.
	Subjects, System string
	// IDVariable and ErrorVariable are the names under which the process holds a sample's id and the error.
	IDVariable, ErrorVariable string
	// Work is the task that may fail.
	Work Work
	// Also are further tasks of the outside system; usually none.
	Also []Task
	// Samples that the demo starts.
	Samples []*Sample
}

// Work is a task of the outside system that may fail.
type Work struct {
	JobType string
	// ErrorCode of the BPMN error that a failure throws.
	ErrorCode string
	// Try and Done are how one try of it and its success are told.
	Try, Done string
}

// Task is a job type with its answer to one sample's job; the players' lock is held.
type Task struct {
	JobType string
	Answer  func(*players, *progress) worker.Reply
}

// Sample is one instance to start, and what the outside system and the people say to it.
type Sample struct {
	ID string
	// Shows is what it is there to show; samples that show the same are counted together.
	Shows string
	// Variables that the instance starts with, beside its id.
	Variables map[string]any
	// Failures of the work, one a try; the try after the last one succeeds.
	Failures []Failure
	// Protocol is the number under which the portal took the first submission, though it did not answer; empty where it did
	// not take it. Whoever looks it up there closes the dead letter as accepted.
	Protocol string
	// Discard is what the person in the review does; else the work is tried again.
	Discard bool
	// Left tells that where the demo stays nobody reviews it but the person who looks at the screen.
	Left bool
	// Incident tells that the worker refuses what the process holds.
	Incident bool
	// Open dependencies at the beginning (JOB_QUEUE).
	Open int
	// Silent tells that no message says when they are resolved.
	Silent bool
}

// Failure is how one try of the work ends.
type Failure struct {
	// Text of the error.
	Text string
	// Variables beside it.
	Variables map[string]any
}

// Processes returns the four bundled ones with their samples. run makes the ids differ from those of an earlier run.
func Processes(run int64) []*Process {
	const room = 100 // for the samples of a run
	all := []*Process{claims(), messages(), failedJobs(), queuedJobs()}
	number := run * room
	for _, p := range all {
		for _, x := range p.Samples {
			number++
			x.ID = fmt.Sprintf(p.SampleID, number)
		}
	}
	return all
}

// texts returns failures that are known by their text alone.
func texts(all ...string) []Failure {
	failures := make([]Failure, len(all))
	for i, text := range all {
		failures[i].Text = text
	}
	return failures
}

// times returns n of the same.
func times[T any](n int, x T) []T { return slices.Repeat([]T{x}, n) }

// start returns the JSON that an instance starts with.
func (p *Process) start(s *Sample) string { return withAlso(p.IDVariable, s.ID, s.Variables) }

// thrown returns the variables of the BPMN error that a failure throws.
func (p *Process) thrown(f Failure) string { return withAlso(p.ErrorVariable, f.Text, f.Variables) }

// withAlso returns the JSON of a variable, and of others.
func withAlso(name, value string, others map[string]any) string {
	all := map[string]any{name: value}
	maps.Copy(all, others)
	return jsonObject(all)
}

func jsonObject(m map[string]any) string {
	b, err := json.Marshal(m)
	if err != nil { // cannot be: the maps hold texts, numbers and truth values
		return "{}"
	}
	return string(b)
}

// claims are submitted to the insurers' TISS portal (SUB_06; RN-BIL-005, RN-BIL-004).
func claims() *Process {
	const down = "Portal TISS não respondeu em 30s: TIMEOUT"
	const (
		accepted   = "accepted at once"
		transient  = "the portal stumbles, then accepts"
		unknown    = "an error that nobody knows, retried to be safe"
		permanent  = "a person must act"
		taken      = "the portal takes it and does not answer: refused as sent twice"
		asked      = "the same, and the portal is asked before it is sent again"
		credential = "many of one cause: the portal's credential has expired"
		exhausted  = "the portal errs through the whole ladder"
		rejected   = "the process holds nonsense: an incident"
	)
	twice := texts("java.net.SocketTimeoutException: Read timed out", "DUPLICATE_CLAIM: guia já apresentada")
	always := times(6, Failure{Text: "500 Internal Server Error"})
	p := &Process{
		ID: "SUB_06", SampleID: "CLM-DEMO-%d", Subjects: "claims", System: "the insurers' TISS portal",
		IDVariable: "claimId", ErrorVariable: "submissionError",
		Work: Work{JobType: "submit-claim", ErrorCode: "SUBMISSION_FAILED", Try: "submission",
			Done: "accepted by the portal"},
		Also: []Task{{JobType: "check-submission", Answer: checkSubmission}},
		Samples: []*Sample{
			{Shows: accepted},
			{Shows: accepted},
			{Shows: accepted},
			{Shows: transient, Failures: texts("TIMEOUT - Connection timeout after 30s")},
			{Shows: transient, Failures: texts("HTTP 503 Service Unavailable", "HTTP 504 Gateway Timeout")},
			{Shows: transient, Failures: texts("java.net.SocketTimeoutException: Read timed out")},
			{Shows: transient, Failures: texts("CONNECTION_ERROR: connection reset by peer", "NETWORK_ERROR: no route to host",
				"HTTP 503")},
			{Shows: transient, Failures: texts("429 Too Many Requests: rate limit of the operator reached")},
			{Shows: transient, Failures: texts("500 Internal Server Error")},
			{Shows: unknown, Failures: texts("Resposta inesperada da operadora")},
			{Shows: unknown, Failures: texts("unexpected end of XML document at line 4",
				"unexpected end of XML document at line 4")},
			{Shows: unknown, Failures: texts("Falha ao processar lote")},
			{Shows: unknown, Failures: texts("ORA-12541")},
			{Shows: unknown, Failures: texts("lote recusado sem motivo informado")},
			{Shows: permanent, Failures: texts("INVALID_PATIENT_DATA - data de nascimento ausente"), Left: true},
			{Shows: permanent, Failures: texts("INSURANCE_EXPIRED: plano encerrado"), Discard: true},
			{Shows: permanent, Failures: texts("Authorization denied by the operator"), Left: true},
			{Shows: permanent, Failures: texts("INVALID_PROCEDURE_CODE 99999999")},
			{Shows: permanent, Failures: texts("HTTP 503", "INVALID_PATIENT_DATA - sexo não informado")},
			{Shows: taken, Failures: twice, Protocol: "2026-000117"},
			{Shows: taken, Failures: twice, Protocol: "2026-000118", Left: true},
			{Shows: asked, Failures: twice, Protocol: "2026-000119", Variables: map[string]any{"checkBeforeResend": true}},
			{Shows: exhausted, Failures: always, Left: true},
			{Shows: exhausted, Failures: always},
			{Shows: exhausted, Failures: always, Discard: true},
			{Shows: exhausted, Failures: always},
			{Shows: exhausted, Failures: always, Discard: true},
			{Shows: rejected, Incident: true, Variables: map[string]any{"retryCount": -1}, Failures: texts(down)},
			{Shows: rejected, Incident: true, Variables: map[string]any{"retryCount": "2"}, Failures: texts(down)},
			{Shows: rejected, Incident: true, Variables: map[string]any{"retryCount": 2.5}, Failures: texts(down)},
			{Shows: rejected, Incident: true, Variables: map[string]any{"lastSubmissionTime": "ontem"}, Failures: texts(down)},
			{Shows: rejected, Incident: true, Failures: texts("   ")},
		},
	}
	for range 20 {
		p.Samples = append(p.Samples, &Sample{Shows: credential, Failures: texts("AUTHORIZATION_DENIED: credencial do portal vencida"), Left: true})
	}
	for i, s := range p.Samples { // each goes elsewhere: a portal that keeps failing would hold the others
		if s.Variables == nil {
			s.Variables = map[string]any{}
		}
		s.Variables["operadora"] = fmt.Sprintf("operadora-%02d", i+1)
	}
	return p
}

// messages are sent by the Evolution API (WHATSAPP_MESSAGE; TRD-0003).
func messages() *Process {
	down := Failure{"Service Unavailable", map[string]any{"httpStatus": 503}}
	return &Process{
		ID: "WHATSAPP_MESSAGE", SampleID: "MSG-DEMO-%d", Subjects: "messages", System: "the Evolution API",
		IDVariable: "messageId", ErrorVariable: "sendError",
		Work: Work{JobType: "send-whatsapp-message", ErrorCode: "SEND_FAILED", Try: "attempt",
			Done: "accepted by the Evolution API"},
		Samples: []*Sample{
			{Shows: "sent at once"},
			{Shows: "503, then sent", Failures: []Failure{down}},
			{Shows: "no answer in time, then sent", Failures: texts("timeout of 30000ms exceeded")},
			{Shows: "an error that nobody knows, retried to be safe",
				Failures: texts("instância desconectada", "instância desconectada")},
			{Shows: "404, no such number: a dead letter at once", Discard: true,
				Failures: []Failure{{"number is not registered on WhatsApp", map[string]any{"httpStatus": 404}}}},
			{Shows: "down through all 4 attempts: a dead letter, sent again", Left: true, Failures: times(4, down)},
			{Shows: "down through all 4 attempts: a dead letter, let go", Failures: times(4, down), Discard: true},
		},
	}
}

// failedJobs are run by the hospital (FAILED_JOB; Retry Failed Job).
func failedJobs() *Process {
	const away = "Serviço externo indisponível"
	return &Process{
		ID: "FAILED_JOB", SampleID: "JOB-DEMO-%d", Subjects: "jobs", System: "a job runner",
		IDVariable: "jobId", ErrorVariable: "jobError",
		Work: Work{JobType: "run-job", ErrorCode: "JOB_FAILED", Try: "run", Done: "done"},
		Samples: []*Sample{
			{Shows: "done at once"},
			{Shows: "fails once, then done", Failures: texts(away)},
			{Shows: "fails twice, then done", Failures: texts(away, "connection refused")},
			{Shows: "fails beyond 3 retries, a person runs it again", Failures: times(4, Failure{Text: away})},
			{Shows: "fails beyond 3 retries, a person lets it go", Failures: times(4, Failure{Text: away}), Discard: true},
		},
	}
}

const (
	// dependencyResolved is the message that a waiting job of JOB_QUEUE listens for.
	dependencyResolved = "dependency-resolved"
	// messageLife is how long the engine keeps a message that comes before the job listens.
	messageLife = 30 * time.Second
)

// queuedJobs bring a retry policy of their own, and wait for others (JOB_QUEUE; UC-004).
func queuedJobs() *Process {
	const failed = "Falha ao gerar o relatório"
	policy := func(maxAttempts int, delay any) map[string]any {
		return map[string]any{"maxAttempts": maxAttempts, "delayBetweenAttempts": delay}
	}
	return &Process{
		ID: "JOB_QUEUE", SampleID: "QUEUE-DEMO-%d", Subjects: "jobs with a retry policy of their own", System: "a job queue",
		IDVariable: "jobId", ErrorVariable: "jobError",
		Work: Work{JobType: "run-queued-job", ErrorCode: "JOB_FAILED", Try: "run", Done: "done"},
		Also: []Task{{JobType: "check-dependencies", Answer: checkDependencies}},
		Samples: []*Sample{
			{Shows: "done at once"},
			{Shows: "3 attempts, PT2S between them: done at the third", Variables: policy(3, "PT2S"),
				Failures: texts(failed, failed)},
			{Shows: "2 attempts, 1500 ms between them: done at the second", Variables: policy(2, 1500), Failures: texts(failed)},
			{Shows: "no retry policy: FAILED at the first failure", Failures: texts(failed), Discard: true},
			{Shows: "an error that is not retryable: FAILED whatever is left", Variables: policy(5, "PT10S"),
				Failures: []Failure{{"Relatório sem período", map[string]any{"nonRetryable": true}}}},
			{Shows: "3 attempts used up: FAILED", Variables: policy(3, "PT5S"), Failures: times(3, Failure{Text: failed})},
			{Shows: "waits for 2 dependencies, told by a message", Open: 2},
			{Shows: "waits for a dependency, nobody tells: looks again after a minute", Open: 1, Silent: true},
		},
	}
}

// checkSubmission says whether the portal has the claim, of a submission that it did not answer.
func checkSubmission(p *players, g *progress) worker.Reply {
	if g.Protocol == "" {
		p.story.say(g.Sample, "the portal is asked: it has no such claim")
		return worker.Reply{Action: worker.Completed, Variables: `{"submissionFound":false}`}
	}
	p.story.say(g.Sample, "the portal is asked: it has the claim, as %s", g.Protocol)
	p.story.end(g.Sample, "not sent again: the portal had it")
	return worker.Reply{Action: worker.Completed, Variables: jsonObject(map[string]any{"submissionFound": true,
		"protocolNumber": g.Protocol})}
}

// checkDependencies says how many dependencies are open. Once the engine knows, one of them is resolved.
func checkDependencies(p *players, g *progress) worker.Reply {
	open := g.open
	if open == 0 {
		p.story.say(g.Sample, "no dependency open: PENDING")
	} else {
		p.story.say(g.Sample, "dependencies open: %d; WAITING", open)
	}
	r := worker.Reply{Action: worker.Completed, Variables: fmt.Sprintf(`{"openDependencies":%d}`, open)}
	if open > 0 {
		r.Taken = func() { p.resolve(g, open-1) }
	}
	return r
}

// resolve leaves so many dependencies open, and tells the engine where the sample is not silent.
func (p *players) resolve(g *progress, open int) {
	p.mu.Lock()
	g.open = open
	p.mu.Unlock()
	if g.Silent {
		p.story.say(g.Sample, "a dependency is resolved, and nobody says so")
		return
	}
	p.story.say(g.Sample, "a dependency is resolved; the message %s is published", dependencyResolved)
	if err := p.Engine.Publish(p.ctx, dependencyResolved, g.ID, messageLife); err != nil {
		p.story.note("%v; the job looks again after a minute.", err)
	}
}
