package api

import (
	"cmp"
	"context"
	"strconv"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// DeadLetters lists dead letters, also by their cause, and takes people's decisions on them (deadletter.Service does).
// Its errors hold a *deadletter.Refusal where nothing was done; any other means that the decision is not recorded for
// sure, and may be sent again. Safe for concurrent use.
type DeadLetters interface {
	List(
		ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int,
	) (items []deadletter.Item, next string, err error)
	Show(ctx context.Context, id string) (deadletter.Item, error)
	// Groups are the causes of dead letters, the one with the most first.
	Groups(
		ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int,
	) (groups []deadletter.Group, next string, err error)
	// ListCauses lists those that were seen, the one with the most failures first.
	ListCauses(
		ctx context.Context, f journal.CauseFilter, cursor string, limit int,
	) (causes []journal.Cause, next string, err error)
	Cause(ctx context.Context, id string) (journal.Cause, error)
	// Prospects are what came of a cause's retries.
	Prospects(c *journal.Cause) journal.Prospects
	Teach(ctx context.Context, id string, t journal.Teaching) (journal.Cause, error)
	// Foresee has a failure be what was taught of its cause, and know what was learnt of it.
	Foresee(ctx context.Context, p *decision.Policy, f *decision.Failure, redacted string) error
	Retry(ctx context.Context, c deadletter.Command) (deadletter.Item, error)
	Discard(ctx context.Context, c deadletter.Command) (deadletter.Item, error)
}

// DeadLetter is a dead letter as the API shows it. Keys of the engine are texts: a number would lose its last digits in
// JavaScript.
type DeadLetter struct {
	ID              string                  `json:"id"`
	State           journal.DeadLetterState `json:"state"`
	Subject         SubjectName             `json:"subject"`
	Outcome         decision.Outcome        `json:"outcome"`
	Reason          decision.Reason         `json:"reason"`
	ResponsibleTeam decision.Team           `json:"responsibleTeam"`
	// ErrorClassification, MatchedRule and Fingerprint are null where the process reported the failure itself.
	ErrorClassification *string `json:"errorClassification"`
	MatchedRule         *string `json:"matchedRule"`
	// Error has nothing personal in it.
	Error       string  `json:"error"`
	Fingerprint *string `json:"fingerprint"`
	// Context of the claim, as far as it brought what the policy names.
	Context    decision.Context `json:"context"`
	RetryCount int64            `json:"retryCount"`
	MaxRetries int64            `json:"maxRetries"`
	// ForceNeeded tells that a retry takes forceRetry: the limit is reached, or the deadline has passed.
	ForceNeeded        bool    `json:"forceNeeded"`
	Episode            int64   `json:"episode"`
	FirstFailure       *string `json:"firstFailure"`
	Deadline           *string `json:"deadline"`
	CreatedAt          string  `json:"createdAt"`
	ChangedAt          string  `json:"changedAt"`
	ProcessInstanceKey int64   `json:"processInstanceKey,string"`
	// Process says whether one waits for a decision, Delivery what became of the answer to it.
	Process  deadletter.Process `json:"process"`
	Delivery string             `json:"delivery"`
	// ReviewJobKey is the job by which the process waits, ReviewSeen when it was last seen; null where none was.
	ReviewJobKey *string `json:"reviewJobKey"`
	ReviewSeen   *string `json:"reviewSeen"`
	// Review that was decided; null where nothing was.
	Review *Review `json:"review"`
	// BulkRun that decided it; null where a person decided on this one alone, or nobody did.
	BulkRun *string `json:"bulkRun"`
}

// SubjectName is what a dead letter is of.
type SubjectName struct {
	Tenant string `json:"tenant"`
	Policy string `json:"policy"`
	ID     string `json:"id"`
}

// Review is what a person decided.
type Review struct {
	// Decision is reprocess or discard.
	Decision      string  `json:"decision"`
	Reason        string  `json:"reason"`
	By            string  `json:"by"`
	At            string  `json:"at"`
	ForceRetry    bool    `json:"forceRetry"`
	Fresh         bool    `json:"fresh"`
	NextRetryTime *string `json:"nextRetryTime"`
	Deadline      *string `json:"submissionDeadline"`
}

// noDelivery is journal.DeliveryNone in words, answered is deadletter.Answered; both are empty texts.
const (
	noDelivery                    = "none"
	answered   deadletter.Process = "answered"
)

func deadLetterOf(i *deadletter.Item) DeadLetter {
	d := DeadLetter{
		ID: i.ID, State: i.State, Subject: SubjectName(i.Subject),
		Outcome: i.Outcome, Reason: i.Reason, ResponsibleTeam: i.Team,
		ErrorClassification: journal.OrNull(string(i.Classification)), MatchedRule: journal.OrNull(i.MatchedRule),
		Error: i.Error, Fingerprint: journal.OrNull(i.Fingerprint), Context: append(decision.Context{}, i.Context...),
		RetryCount: i.RetryCount, MaxRetries: i.MaxRetries, ForceNeeded: i.ForceNeeded(), Episode: i.Episode,
		FirstFailure: journal.InstantOrNull(i.FirstFailure), Deadline: journal.InstantOrNull(i.Deadline),
		CreatedAt: decision.Instant(i.CreatedAt), ChangedAt: decision.Instant(i.ChangedAt),
		ProcessInstanceKey: i.ProcessInstanceKey, Process: cmp.Or(i.Process, answered),
		Delivery:   cmp.Or(string(i.Delivery), noDelivery),
		ReviewSeen: journal.InstantOrNull(i.ReviewSeen), Review: reviewOf(&i.Review), BulkRun: journal.OrNull(i.Run),
	}
	if i.ReviewJobKey != 0 {
		d.ReviewJobKey = journal.OrNull(strconv.FormatInt(i.ReviewJobKey, 10))
	}
	return d
}

func reviewOf(n *journal.ReviewNote) *Review {
	if n.At.IsZero() {
		return nil
	}
	r := &Review{
		Decision: "reprocess", Reason: n.Reason, By: n.By, At: decision.Instant(n.At), ForceRetry: n.Force, Fresh: n.Fresh,
		NextRetryTime: journal.InstantOrNull(n.NextRetryTime), Deadline: journal.InstantOrNull(n.Deadline),
	}
	if n.Discard {
		r.Decision = "discard"
	}
	return r
}

// DeadLetterGroup are the dead letters of one cause as the API shows them.
type DeadLetterGroup struct {
	// Fingerprint chooses them in a filter; it is null where the process reported the failures itself.
	Fingerprint *string `json:"fingerprint"`
	Policy      string  `json:"policy"`
	// Reason is what a filter takes: that of the newest of them; some of them may have reached their limit instead.
	Reason decision.Reason `json:"reason"`
	// MatchedRule is the code or rule that told the cause; null where none did.
	MatchedRule    *string `json:"matchedRule"`
	Classification *string `json:"classification"`
	// Pattern is the error without what differs from case to case.
	Pattern   string          `json:"pattern"`
	Count     int64           `json:"count"`
	Amount    string          `json:"amount"` // what they are worth
	FirstSeen string          `json:"firstSeen"`
	LastSeen  string          `json:"lastSeen"`
	Teams     []decision.Team `json:"teams"`
	// Sample is the newest of them; null where it is not told.
	Sample *DeadLetter `json:"sample"`
}

func groupOf(g *deadletter.Group) DeadLetterGroup {
	shown := DeadLetterGroup{
		Fingerprint: journal.OrNull(g.Cause.ID), Policy: g.Cause.Policy, Reason: g.Cause.Reason,
		Classification: journal.OrNull(string(g.Cause.Classification)), Pattern: g.Cause.Pattern, Count: g.N, Amount: decision.Amount(g.Cents),
		FirstSeen: decision.Instant(g.First), LastSeen: decision.Instant(g.Last),
		Teams: append([]decision.Team{}, g.Teams...),
	}
	if g.Sample.ID != "" {
		sample := deadLetterOf(&g.Sample)
		shown.Sample = &sample
		shown.Reason, shown.MatchedRule = g.Sample.Reason, journal.OrNull(g.Sample.MatchedRule)
	}
	return shown
}

// deadLetters answers GET /api/v1/dead-letters, the newest first.
func (s *API) deadLetters(c *call) (any, error) {
	limit, f, cursor := c.limit(), c.filter(), c.name("cursor")
	if c.wrong() != nil {
		return nil, c.wrong()
	}
	items, next, err := c.List(c.Context(), f, cursor, limit)
	return pageOf(items, next, deadLetterOf), err
}

// groups answers GET /api/v1/dead-letters/groups, the cause with the most dead letters first.
func (s *API) groups(c *call) (any, error) {
	limit, f, cursor := c.limit(), c.filter(), c.name("cursor")
	if c.wrong() != nil {
		return nil, c.wrong()
	}
	groups, next, err := c.Groups(c.Context(), f, cursor, limit)
	return pageOf(groups, next, groupOf), err
}

// deadLetter answers GET /api/v1/dead-letters/{id}.
func (s *API) deadLetter(c *call) (any, error) {
	item, err := c.Show(c.Context(), c.PathValue("id"))
	return deadLetterOf(&item), err
}

// retry answers POST /api/v1/dead-letters/{id}/retry.
func (s *API) retry(c *call) (any, error) { return s.retryOne(c, c.PathValue("id")) }

// retryJob answers POST /api/v1/jobs/retry, the request of retry-failed-job.md.
func (s *API) retryJob(c *call) (any, error) {
	id := c.text("jobId")
	if id == "" {
		c.invalid("jobId", "jobId is missing, expected the id of a dead letter")
	}
	return s.retryOne(c, id)
}

// retryOne sends a dead letter again, as the fields say.
func (s *API) retryOne(c *call, id string) (any, error) {
	return s.decideOn(c, c.DeadLetters.Retry, deadletter.Command{
		ID: id, Reason: c.reason(), Force: c.boolean("forceRetry"), Fresh: c.boolean("fresh"),
		When: deadletter.When(c.text("when")), Deadline: c.instant("submissionDeadline"),
	}, "reprocess")
}

// discard answers POST /api/v1/dead-letters/{id}/discard.
func (s *API) discard(c *call) (any, error) {
	return s.decideOn(c, c.DeadLetters.Discard, deadletter.Command{ID: c.PathValue("id"), Reason: c.reason()}, "discard")
}

// decideOn has a decision recorded if who asks may decide that, and answers with the dead letter as it stands after.
// The role goes first, whatever state the dead letter is in; its team never changes. Who asked comes from the log-in,
// never from the fields.
func (s *API) decideOn(
	c *call, decide func(context.Context, deadletter.Command) (deadletter.Item, error), command deadletter.Command,
	decision string,
) (any, error) {
	if c.wrong() != nil {
		return nil, c.wrong()
	}
	action := access.Review.Anew(command.Fresh)
	if !s.gate.RoleAllows(c.w, c.Request, action) {
		return nil, errAnswered
	}
	item, err := c.Show(c.Context(), command.ID)
	if err != nil {
		return nil, err
	}
	if !s.gate.Allowed(c.w, c.Request, action, string(item.Team)) {
		return nil, errAnswered
	}
	command.By = c.by()
	if item, err = decide(c.Context(), command); err != nil {
		return nil, &unsure{err, "the decision was not recorded for sure; send it again: if it was, " +
			"the answer is invalid_retry_state with your name"}
	}
	s.log.Info("a dead letter was decided on", zap.String("event", "dead_letter_reviewed"),
		zap.String("deadLetterId", item.ID),
		zap.String("decision", decision), zap.String("by", command.By), zap.Bool("forceRetry", command.Force),
		zap.Bool("fresh", command.Fresh))
	return deadLetterOf(&item), nil
}
