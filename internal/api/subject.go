package api

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/audit"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
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
		Episodes: viewsOf(s.Episodes, func(e *journal.Episode) EpisodeView {
			return EpisodeView{
				Number: e.Number, State: e.StateAt(now), RetryCount: e.Retries, ProcessInstanceKey: e.ProcessInstanceKey,
				FirstFailure: decision.Instant(e.FirstFailure), OpenedAt: decision.Instant(e.OpenedAt),
				ClosedAt: journal.InstantOrNull(e.ClosedAt), NextRetryTime: journal.InstantOrNull(e.NextRetryTime),
				DeadLetterID: journal.OrNull(e.DeadLetter),
			}
		}),
		Attempts: viewsOf(s.Attempts, func(a *journal.Attempt) AttemptView {
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
	if !printable(s.Policy) || !printable(s.ID) {
		return s, unknown()
	}
	return s, nil
}

// subject answers GET /api/v1/subjects/{policy}/{id}.
func (c *call) subject(in *subjectInput) (Subject, error) {
	of, err := in.subject()
	if err != nil {
		return Subject{}, err
	}
	story, found, err := c.Story(c.Context(), of)
	if err == nil && !found {
		err = unknown()
	}
	return Subject{of.Policy, of.ID, ViewOf(&story, c.now())}, err
}

// auditPage is how many records one answer lists.
const auditPage = 100

// audit answers GET /api/v1/subjects/{policy}/{id}/audit with its records, the oldest first.
func (c *call) audit(in *struct {
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
		next = strconv.FormatInt(records[auditPage-1].Number(), 10)
	}
	return pageOf(records, next, audit.Of), err
}

// Erased is what an erasure removed of a subject.
type Erased struct {
	Records int   `json:"records" doc:"How many were erased."`
	Record  int64 `json:"record" doc:"The record that says so."`
}

// erase answers POST /api/v1/subjects/{policy}/{id}/erase.
func (c *call) erase(in *struct {
	subjectInput
	reasonInput
}) (Erased, error) {
	of, err := in.subject()
	if err != nil {
		return Erased{}, err
	}
	done, err := c.Erase(c.Context(), journal.Erasure{Subject: of, Reason: in.Reason})
	return Erased(done), err
}

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

// conclude answers POST /api/v1/outcomes.
func (c *call) conclude(in *outcomeInput) (Outcome, error) {
	o, policy, err := c.outcome(in)
	if err != nil {
		return Outcome{}, err
	}
	done, err := c.Conclude(c.Context(), policy, o)
	if err == nil && done.Episode.Number == 0 {
		err = unknown()
	}
	return Outcome{SubjectName(o.Subject), standingOf(&done.Episode, c.now()), done.Changed}, err
}

// outcome returns the outcome that a request reports, and its policy.
func (c *call) outcome(in *outcomeInput) (*journal.Outcome, *decision.Policy, error) {
	policy, rejection := c.Policies().Find(in.Policy)
	if rejection != nil {
		return nil, nil, rejected(rejection, "policy")
	}
	failure, rejection := policy.Read(decision.Variables{ID: in.ID})
	if rejection != nil {
		return nil, nil, rejected(rejection, "id")
	}
	result, rejection := decision.ReadResult(in.Outcome)
	if rejection != nil {
		return nil, nil, rejected(rejection, "outcome")
	}
	if in.At.Sub(c.now()) > journal.ClockTolerance {
		return nil, nil, refused("invalid_at", "at is %s, which lies in the future; leave it out for now",
			decision.Instant(in.At))
	}
	if in.Protocol != "" && !decision.IsProtocol(in.Protocol) {
		return nil, nil, deadletter.ErrNoProtocol
	}
	o := &journal.Outcome{At: in.At, Team: policy.LimitTeam}
	o.Ended(result, in.Protocol)
	o.Subject = journal.Subject{Tenant: in.Tenant, Policy: policy.Name, ID: failure.ID}
	return o, policy, nil
}

// rejected refuses a request because of a field. The message names the field, not the process variable.
func rejected(r *decision.Rejection, field string) error {
	named := *r
	named.Variable = field
	_, message, _ := strings.Cut(journal.RejectionMessage(&named), ": ") // without the code
	return refused(strings.ToLower(string(r.Code)), "%s", message)
}
