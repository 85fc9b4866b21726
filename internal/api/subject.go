package api

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/audit"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/worker"
)

// maxShown attempts, and episodes, of a subject in one answer: the latest. The audit has them all, by pages.
const maxShown = 500

// Subject is a subject as the API shows it.
type Subject struct {
	Policy string `json:"policy"`
	ID     string `json:"id"`
	View
	// Omitted is how many attempts and episodes there are before those that are shown.
	Omitted Omitted `json:"omitted"`
}

// Omitted says how much is not shown.
type Omitted struct {
	Attempts int `json:"attempts"`
	Episodes int `json:"episodes"`
}

func shown(of journal.Subject, v *View) Subject {
	s := Subject{Policy: of.Policy, ID: of.ID, View: *v}
	s.Omitted = Omitted{max(0, len(v.Attempts)-maxShown), max(0, len(v.Episodes)-maxShown)}
	s.Attempts, s.Episodes = v.Attempts[s.Omitted.Attempts:], v.Episodes[s.Omitted.Episodes:]
	return s
}

// Keys of the engine are texts in JSON: a number would lose its last digits in JavaScript.

// View is what the API and the command line show of a subject, as JSON.
type View struct {
	Tenant string `json:"tenant"`
	Standing
	// HeldSince is since when a process of it waits at a gate; null where none does.
	HeldSince *string `json:"heldSince"`

	Episodes []EpisodeView `json:"episodes"`
	Attempts []AttemptView `json:"attempts"`
}

// Standing is how a subject stands: in which state its latest episode is, and what comes next.
type Standing struct {
	State         journal.State  `json:"state"`
	Status        journal.Status `json:"status"`
	RetryCount    int64          `json:"retryCount"`
	NextRetryTime *string        `json:"nextRetryTime"`
	DeadLetterID  *string        `json:"deadLetterId"`
}

func standingOf(e *journal.Episode, now time.Time) Standing {
	state := e.StateAt(now)
	return Standing{state, state.Status(), e.Retries, journal.InstantOrNull(e.NextRetryTime), journal.OrNull(e.DeadLetter)}
}

// EpisodeView is one episode as JSON.
type EpisodeView struct {
	Number             int64         `json:"number"`
	State              journal.State `json:"state"`
	RetryCount         int64         `json:"retryCount"`
	FirstFailure       string        `json:"firstFailure"`
	OpenedAt           string        `json:"openedAt"`
	ClosedAt           *string       `json:"closedAt"`
	NextRetryTime      *string       `json:"nextRetryTime"`
	DeadLetterID       *string       `json:"deadLetterId"`
	ProcessInstanceKey int64         `json:"processInstanceKey,string"`
}

// AttemptView is one attempt as JSON, in one of its revisions.
type AttemptView struct {
	AttemptNumber       int64                        `json:"attemptNumber"`
	Revision            int64                        `json:"revision"`
	Episode             int64                        `json:"episode"`
	Timestamp           string                       `json:"timestamp"`
	Error               string                       `json:"error"`
	ErrorClassification decision.ErrorClassification `json:"errorClassification"`
	MatchedRule         *string                      `json:"matchedRule"`
	// MatchedText is what the rule matched, with nothing personal in it. It and Catalogue, the version of the
	// catalogue that was decided by, are null in records of a worker that did not keep them.
	MatchedText *string          `json:"matchedText"`
	Catalogue   *string          `json:"catalogue"`
	Reason      decision.Reason  `json:"reason"`
	Outcome     decision.Outcome `json:"outcome"`
	// AnalysedRetryCount is what was decided on, RetryCount what the process got.
	AnalysedRetryCount int64   `json:"analysedRetryCount"`
	RetryCount         int64   `json:"retryCount"`
	MaxRetries         int64   `json:"maxRetries"`
	BackoffMinutes     *int64  `json:"backoffMinutes"`
	NextRetryTime      *string `json:"nextRetryTime"`
	RetryReason        string  `json:"retryReason"`
	// SuccessProbability of the retry, and the record that taught what the decision went by (R26); absent where there is
	// none.
	SuccessProbability float64       `json:"successProbability,omitempty"`
	Taught             int64         `json:"taught,omitempty"`
	ResponsibleTeam    decision.Team `json:"responsibleTeam,omitempty"`
	DeadLetterID       *string       `json:"deadLetterId"`
	ExecutionTimeMs    float64       `json:"executionTimeMs"`
	JobKey             int64         `json:"jobKey,string"`
	ProcessInstanceKey int64         `json:"processInstanceKey,string"`
}

// ViewOf returns the story as it stands at instant now.
func ViewOf(s *journal.Story, now time.Time) View {
	v := View{
		Tenant: s.Subject.Tenant, Standing: Standing{Status: journal.StatusPending}, // until it fails
		Episodes: viewsOf(s.Episodes, func(e *journal.Episode) EpisodeView { return episodeView(e, now) }),
		Attempts: viewsOf(s.Attempts, attemptView),
	}
	if len(s.Held) > 0 {
		v.HeldSince = journal.InstantOrNull(s.Held[0].Since)
	}
	if n := len(s.Episodes); n > 0 {
		v.Standing = standingOf(&s.Episodes[n-1], now)
	}
	return v
}

func episodeView(e *journal.Episode, now time.Time) EpisodeView {
	return EpisodeView{
		Number: e.Number, State: e.StateAt(now), RetryCount: e.Retries, ProcessInstanceKey: e.ProcessInstanceKey,
		FirstFailure: decision.Instant(e.FirstFailure), OpenedAt: decision.Instant(e.OpenedAt),
		ClosedAt: journal.InstantOrNull(e.ClosedAt), NextRetryTime: journal.InstantOrNull(e.NextRetryTime),
		DeadLetterID: journal.OrNull(e.DeadLetter),
	}
}

func attemptView(a *journal.Attempt) AttemptView {
	d := &a.Decision
	v := AttemptView{
		AttemptNumber: a.Number, Revision: a.Revision, Episode: a.Episode, Timestamp: decision.Instant(d.AnalysedAt),
		Error: a.Error, ErrorClassification: d.ErrorClassification, MatchedRule: journal.OrNull(d.MatchedRule),
		MatchedText: journal.OrNull(d.MatchedText), Catalogue: journal.OrNull(d.Catalogue), Reason: d.Reason,
		Outcome:            d.Outcome,
		AnalysedRetryCount: a.AnalysedCount, RetryCount: d.RetryCount, MaxRetries: d.MaxRetries,
		NextRetryTime: journal.InstantOrNull(d.NextRetryTime), RetryReason: d.RetryReason, ResponsibleTeam: d.Team,
		SuccessProbability: d.SuccessProbability, Taught: d.Taught,
		DeadLetterID: journal.OrNull(a.DeadLetter), ExecutionTimeMs: float64(a.Took.Microseconds()) / 1000,
		JobKey: a.JobKey, ProcessInstanceKey: a.ProcessInstanceKey,
	}
	if d.ShouldRetry() {
		minutes := decision.Minutes(d.Wait())
		v.BackoffMinutes = &minutes
	}
	return v
}

// unknown is why nothing is said of a subject.
func unknown() error {
	return &refusal{http.StatusNotFound, "subject_not_found",
		"the journal knows no failure of this subject; policy, id and tenant must be written as the process has them"}
}

// subject is the one that the address names; it is refused where nothing can have that name.
func (c *call) subject(tenant string) journal.Subject {
	s := journal.Subject{Tenant: tenant, Policy: c.PathValue("policy"), ID: c.PathValue("id")}
	if !printable(s.Policy) || !printable(s.ID) {
		c.input.refuse(unknown())
	}
	return s
}

// subject answers GET /api/v1/subjects/{policy}/{id}.
func (s *API) subject(c *call) (any, error) {
	of := c.subject(c.tenant())
	if c.wrong() != nil {
		return nil, c.wrong()
	}
	story, found, err := c.Story(c.Context(), of)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, unknown()
	}
	view := ViewOf(&story, s.now())
	return shown(of, &view), nil
}

// auditPage is how many records one answer lists.
const auditPage = 100

// audit answers GET /api/v1/subjects/{policy}/{id}/audit with its records, the oldest first.
func (s *API) audit(c *call) (any, error) {
	after, of := c.numberCursor(), c.subject(c.tenant())
	if c.wrong() != nil {
		return nil, c.wrong()
	}
	records, err := c.Records(c.Context(), journal.RecordFilter{Subject: of}, after, auditPage+1)
	if err != nil {
		return nil, err
	}
	if len(records) == 0 && after == 0 {
		return nil, unknown()
	}
	next := "" // one more than fit tells that another page follows
	if len(records) > auditPage {
		records = records[:auditPage]
		next = strconv.FormatInt(records[auditPage-1].Number(), 10)
	}
	return pageOf(records, next, audit.Of), nil
}

// Erased is what an erasure took of a subject.
type Erased struct {
	// Records are how many were erased, Record is the one that says so.
	Records int   `json:"records"`
	Record  int64 `json:"record"`
}

// erase answers POST /api/v1/subjects/{policy}/{id}/erase.
func (s *API) erase(c *call) (any, error) {
	q, err := readQuery(c.w, c.Request, []string{"tenant"})
	if err != nil {
		return nil, err
	}
	tenant := (&input{q, c.bad}).tenant()
	e := journal.Erasure{Reason: c.checkedReason(), Subject: c.subject(tenant), By: c.by()}
	if c.wrong() != nil {
		return nil, c.wrong()
	}
	done, err := c.Erase(c.Context(), c.Store, e)
	if err != nil {
		return nil, &unsure{err, "whether the subject was erased is not known; ask again (once it was, the answer is " +
			"subject_not_found), or see the worker's log"}
	}
	s.log.Info("a subject was erased", zap.String("event", "subject_erased"), zap.String("by", e.By),
		zap.Int64("record", done.Record), zap.Int("records", done.Records))
	return Erased(done), nil
}

// Outcome is what became of a subject when an outcome was told.
type Outcome struct {
	SubjectName
	Standing
	// Changed is false where it had ended already, or where a retry lies ahead.
	Changed bool `json:"changed"`
}

// conclude answers POST /api/v1/outcomes.
func (s *API) conclude(c *call) (any, error) {
	o, policy := s.outcome(&c.input)
	if c.wrong() != nil {
		return nil, c.wrong()
	}
	o.By = c.by()
	done, err := s.concludeAsked(c, o)
	if err != nil {
		return nil, err
	}
	if done.Episode.Number == 0 {
		return nil, unknown()
	}
	if done.Changed { // the log's line is that of an outcome that a job reports
		s.log.Info("outcome recorded", zap.String("event", "retry_outcome_recorded"),
			worker.SubjectField(policy, o.Subject.ID), zap.String("retryPolicy", o.Subject.Policy),
			zap.String("by", o.By), zap.String("state", string(done.Episode.State)), zap.Int64("retryCount", done.Episode.Retries))
	}
	return Outcome{SubjectName(o.Subject), standingOf(&done.Episode, s.now()), done.Changed}, nil
}

// concludeAsked has an outcome recorded. Where the claim has a dead letter that ends a team's case, as a decision on it
// does: who asks must be allowed that. Nothing changes before its team is known.
func (s *API) concludeAsked(c *call, o *journal.Outcome) (journal.Concluded, error) {
	for {
		done, err := c.Conclude(c.Context(), o)
		if err != nil {
			return done, &unsure{err, "the outcome was not recorded for sure; send it again: told twice it changes nothing"}
		}
		e := &done.Episode
		if done.Changed || !e.State.Open() || e.DeadLetter == o.DeadLetter {
			return done, nil
		}
		o.DeadLetter = e.DeadLetter
		item, err := c.Show(c.Context(), e.DeadLetter)
		if err != nil {
			return done, err
		}
		if !s.gate.Allowed(c.w, c.Request, access.Review, string(item.Team)) {
			return done, errAnswered
		}
	}
}

// outcome is what the fields tell, of a subject of that policy.
func (s *API) outcome(in *input) (*journal.Outcome, *decision.Policy) {
	policy, rejection := s.policies().Find(in.text("policy"))
	in.reject(rejection, "policy")
	if in.wrong() != nil {
		return nil, nil
	}
	failure, rejection := policy.Read(decision.Variables{ID: in.value("id")})
	in.reject(rejection, "id")
	success, rejection := decision.ReadOutcome(in.value("outcome"))
	in.reject(rejection, "outcome")
	o := &journal.Outcome{Success: success, At: in.instant("at"), Team: policy.LimitTeam}
	o.Subject = journal.Subject{Tenant: in.tenant(), Policy: policy.Name, ID: failure.ID}
	if o.At.Sub(s.now()) > journal.ClockTolerance {
		in.invalid("at", "at is %s, which lies in the future; leave it out for now", decision.Instant(o.At))
	}
	return o, policy
}

// reject refuses the input for what is wrong with a field; it names the field, not the process variable.
func (in *input) reject(r *decision.Rejection, field string) {
	if r != nil {
		named := *r
		named.Variable = field
		in.refuse(invalid(strings.ToLower(string(r.Code)), "%s", journal.RejectionMessage(&named)))
	}
}
