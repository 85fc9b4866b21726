package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/audit"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
	"retry-worker/internal/worker"
)

// Subject is a subject as the API shows it.
type Subject struct {
	Policy string `json:"policy"`
	ID     string `json:"id"`
	View
}

// View is what the API and the command line show of a subject, as JSON.
type View struct {
	Tenant string `json:"tenant"`
	Standing
	HeldSince *string       `json:"heldSince" format:"date-time" doc:"Since when its process waits at a gate."`
	Episodes  []EpisodeView `json:"episodes"`
	Attempts  []AttemptView `json:"attempts"`
}

// Standing is the state of a subject's latest episode, and what comes next.
type Standing struct {
	State         journal.State  `json:"state" doc:"The state of its latest episode; empty where it has not failed yet."`
	Status        journal.Status `json:"status" doc:"Its status, as a CRM shows it."`
	RetryCount    int64          `json:"retryCount"`
	NextRetryTime *string        `json:"nextRetryTime" format:"date-time"`
	DeadLetterID  *string        `json:"deadLetterId"`
}

func standingOf(e *journal.Episode, now time.Time) Standing {
	state := e.StateAt(now)
	return Standing{state, state.Status(), e.Retries, journal.InstantOrNull(e.NextRetryTime), journal.OrNull(e.DeadLetter)}
}

// EpisodeView is one episode as JSON.
type EpisodeView struct {
	Number             int64         `json:"number" min:"1"`
	State              journal.State `json:"state"`
	RetryCount         int64         `json:"retryCount"`
	FirstFailure       string        `json:"firstFailure" format:"date-time"`
	OpenedAt           string        `json:"openedAt" format:"date-time"`
	ClosedAt           *string       `json:"closedAt" format:"date-time"`
	NextRetryTime      *string       `json:"nextRetryTime" format:"date-time"`
	DeadLetterID       *string       `json:"deadLetterId"`
	ProcessInstanceKey int64         `json:"processInstanceKey,string"`
}

// AttemptView is one revision of an attempt as JSON.
type AttemptView struct {
	audit.Attempt
	Timestamp string `json:"timestamp" format:"date-time"`
	Error     string `json:"error"`
}

// ViewOf returns the view of a story at instant now.
func ViewOf(s *journal.Story, now time.Time) View {
	v := View{
		Tenant: s.Subject.Tenant, Standing: Standing{Status: journal.StatusPending}, // until it fails
		Episodes: journal.Views(s.Episodes, func(e *journal.Episode) EpisodeView {
			return EpisodeView{
				Number: e.Number, State: e.StateAt(now), RetryCount: e.Retries, ProcessInstanceKey: e.ProcessInstanceKey,
				FirstFailure: decision.Instant(e.FirstFailure), OpenedAt: decision.Instant(e.OpenedAt),
				ClosedAt: journal.InstantOrNull(e.ClosedAt), NextRetryTime: journal.InstantOrNull(e.NextRetryTime),
				DeadLetterID: journal.OrNull(e.DeadLetter),
			}
		}),
		Attempts: journal.Views(s.Attempts, func(a *journal.Attempt) AttemptView {
			return AttemptView{audit.AttemptOf(a), decision.Instant(a.Decision.AnalysedAt), a.Error}
		}),
	}
	if len(s.Held) > 0 {
		v.HeldSince = journal.InstantOrNull(s.Held[0].Since)
	}
	if n := len(s.Episodes); n > 0 {
		v.Standing = standingOf(&s.Episodes[n-1], now)
	}
	return v
}

// unknown returns the refusal for a subject that the journal does not know.
func unknown() error {
	return refused("subject_not_found",
		"the journal knows no failure of this subject; policy, id and tenant must be written as the process has them")
}

// subjectInput names a subject.
type subjectInput struct {
	Policy string `json:"policy" in:"path"`
	ID     string `json:"id" in:"path" doc:"Its id as the process has it: any printable text, percent-encoded."`
	Tenant string `json:"tenant" in:"query" default:"<default>" bytes:"255"`
}

// subject returns the subject that the path names. It refuses a name that no subject can have.
func (in *subjectInput) subject() (journal.Subject, error) {
	s := journal.Subject{Tenant: in.Tenant, Policy: in.Policy, ID: in.ID}
	if !text.Printable(s.Policy) || !text.Printable(s.ID) {
		return s, unknown()
	}
	return s, nil
}

// auditPage is how many records one answer lists.
const auditPage = 100

// Outcome is how a subject stands after its outcome was reported.
type Outcome struct {
	SubjectName
	Standing
	Changed bool `json:"changed" doc:"False where it had ended already, or where a retry lies ahead."`
}

// outcomeInput reports how a subject ended.
type outcomeInput struct {
	Policy   string         `json:"policy" default:"tiss-submission"`
	ID       decision.Value `json:"id" required:"1" type:"string"`
	Outcome  decision.Value `json:"outcome" type:"string" enum:"success,failure,accepted" default:"success" doc:"How it ended."`
	Protocol string         `json:"protocolNumber" length:"40" doc:"The number that the portal gave the claim."`
	At       time.Time      `json:"at" doc:"When it ended; now, if left out."`
	Tenant   string         `json:"tenant" default:"<default>" bytes:"255"`
}

var subjects = []*Operation{
	op(access.Read, "GET /subjects/{policy}/{id}", "showSubject", func(c *call, in *subjectInput) (Subject, error) {
		of, err := in.subject()
		if err != nil {
			return Subject{}, err
		}
		story, found, err := c.Story(c.Context(), of)
		if err == nil && !found {
			err = unknown()
		}
		return Subject{of.Policy, of.ID, ViewOf(&story, c.now())}, err
	}),
	op(access.Read, "GET /subjects/{policy}/{id}/audit", "auditSubject", func(c *call, in *struct {
		subjectInput
		Cursor string `json:"cursor" doc:"What the page before gave as next; none for the first."`
	}) (Page[audit.Record], error) {
		of, unnamed := in.subject()
		after, err := numberCursor(in.Cursor)
		if err = cmp.Or(err, unnamed); err != nil {
			return Page[audit.Record]{}, err
		}
		records, err := c.Records(c.Context(), journal.RecordFilter{Subject: of}, after, auditPage+1)
		if err == nil && len(records) == 0 && after == 0 {
			err = unknown()
		}
		next := "" // one record too many means that another page follows
		if len(records) > auditPage {
			records = records[:auditPage]
			next = strconv.FormatInt(records[auditPage-1].Record, 10)
		}
		return paged(audit.Of)(records, next, err)
	}),
	op(access.Erase, "POST /subjects/{policy}/{id}/erase", "eraseSubject", func(c *call, in *struct {
		subjectInput
		reasonInput
	}) (journal.Erased, error) {
		of, err := in.subject()
		if err != nil {
			return journal.Erased{}, err
		}
		return c.Erase(c.Context(), journal.Erasure{Subject: of, Reason: in.Reason})
	}),
	op(access.Report, "POST /outcomes", "tellOutcome", func(c *call, in *outcomeInput) (Outcome, error) {
		policy, rejection := c.Policies().Find(in.Policy)
		if rejection != nil {
			return Outcome{}, rejected(rejection, "policy")
		}
		failure, rejection := policy.Read(decision.Variables{ID: in.ID})
		if rejection != nil {
			return Outcome{}, rejected(rejection, "id")
		}
		result, rejection := decision.ReadResult(in.Outcome)
		if rejection != nil {
			return Outcome{}, rejected(rejection, "outcome")
		}
		if in.At.Sub(c.now()) > journal.ClockTolerance {
			return Outcome{}, refused("invalid_at", "at is %s, which lies in the future; leave it out for now",
				decision.Instant(in.At))
		}
		if in.Protocol != "" && !decision.IsProtocol(in.Protocol) {
			return Outcome{}, deadletter.ErrNoProtocol
		}
		o := &journal.Outcome{At: in.At, Team: policy.LimitTeam}
		o.Ended(result, in.Protocol)
		o.Subject = journal.Subject{Tenant: in.Tenant, Policy: policy.Name, ID: failure.ID}
		done, err := c.Conclude(c.Context(), policy, o)
		if err == nil && done.Episode.Number == 0 {
			err = unknown()
		}
		return Outcome{SubjectName(o.Subject), standingOf(&done.Episode, c.now()), done.Changed}, err
	}),
}

// rejected refuses a request because of a field. The message names the field, not the process variable.
func rejected(r *decision.Rejection, field string) error {
	named := *r
	named.Variable = field
	_, message, _ := strings.Cut(journal.RejectionMessage(&named), ": ") // without the code
	return refused(strings.ToLower(string(r.Code)), "%s", message)
}

// Rejection is what a dry run answers to input that would give a process an incident.
type Rejection struct {
	Outcome     string  `json:"outcome" enum:"REJECTED" doc:"Nothing was decided."`
	RetryPolicy string  `json:"retryPolicy"`
	MatchedRule *string `json:"matchedRule"`
	Rejection   string  `json:"rejection"`
	Message     string  `json:"message"`
}

// failureInput is a failure to decide on.
type failureInput struct {
	Policy     string                     `json:"policy" default:"tiss-submission"`
	ID         decision.Value             `json:"id" type:"string" doc:"The id of the claim, message or job."`
	Error      decision.Value             `json:"error" type:"string" doc:"The error's text, as the process has it."`
	RetryCount decision.Value             `json:"retryCount" type:"integer" min:"0" doc:"Retries already made."`
	Submitted  decision.Value             `json:"lastSubmissionTime" type:"string" doc:"When it was submitted last."`
	HTTPStatus decision.Value             `json:"httpStatus" type:"integer" max:"599" doc:"Where the policy reads one."`
	Variables  map[string]json.RawMessage `json:"variables" doc:"Others that the policy reads, by the process's names."`
	Now        time.Time                  `json:"now" doc:"When it failed; now, if left out."`
	Explain    bool                       `json:"explain" doc:"Also what else was found in the error, and why it lost."`
}

var decisions = []*Operation{op(access.Read, "POST /decisions", "decide", (*call).decide)}

// decide answers with what `decide -o json` prints. If the journal is open, it heeds what people taught. It records
// nothing.
func (c *call) decide(in *failureInput) (d worker.Decision, err error) {
	policies := c.Policies()
	values, err := in.variables(policies)
	if err != nil {
		return d, err
	}
	if in.Now.IsZero() {
		in.Now = c.now()
	}
	get := func(name string) decision.Value { return values[name] }
	foresee := func(p *decision.Policy, f *decision.Failure, line string) {
		if c.Journal != nil {
			err = c.Foresee(c.Context(), p, f, line)
		}
	}
	d, r := worker.DryRun(policies, in.Policy, get, in.Now, foresee)
	if r != nil {
		why := journal.RejectionMessage(r)
		return d, &access.Refusal{Status: http.StatusUnprocessableEntity, Message: why, Body: text.JSON(
			Rejection{string(decision.Rejected), in.Policy, nil, string(r.Code), why})}
	}
	if !in.Explain {
		d.Evidence = nil
	}
	return d, err
}

// variables returns the process variables that a request gives. It refuses one that the policy does not read, since a
// misspelt name would go unnoticed.
func (in *failureInput) variables(policies decision.Policies) (map[string]decision.Value, error) {
	p, _ := policies.Find(in.Policy)
	if p == nil { // the decision says so
		return nil, nil
	}
	values := map[string]decision.Value{p.IDVariable: in.ID, p.ErrorVariable: in.Error, p.HTTPStatusVariable: in.HTTPStatus,
		decision.RetryCountVariable: in.RetryCount, decision.LastSubmissionVariable: in.Submitted}
	own := slices.DeleteFunc(decision.Policies{p.Name: p}.Variables(), func(name string) bool {
		_, hasField := values[name]
		return hasField
	})
	for name, value := range in.Variables {
		if !slices.Contains(own, name) {
			return nil, refused("unknown_variable", "variables has %.60q, which the policy %s does not read, expected %s",
				name, p.Name, listed("one of ", own, "none"))
		}
		values[name] = decision.Value(value)
	}
	return values, nil
}

// Decide answers POST /decisions as a worker with these policies and no open journal does.
func Decide(policies decision.Policies, now time.Time, body []byte) ([]byte, error) {
	c := &call{Request: &http.Request{Method: http.MethodPost, URL: &url.URL{}, Body: io.NopCloser(bytes.NewReader(body))}}
	c.API = &API{Options: Options{Policies: func() decision.Policies { return policies },
		Gate: access.Options{Now: func() time.Time { return now }}}}
	d, err := decisions[0].do(c)
	return text.JSON(d), err
}
