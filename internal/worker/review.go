package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/redact"
)

// DeadLetterVariable names the dead letter that a process waits for.
const DeadLetterVariable = "deadLetterId"

// awaitReview is the use case of retry-review: a process waits for a person's decision on a dead letter. Its job is
// recorded, and stays locked until the decision is delivered (ReviewSink), even across restarts.
func (t *task) awaitReview(ctx context.Context) (Reply, error) {
	vs, err := t.readVariables()
	if err != nil {
		return Reply{}, err
	}
	id, err := readDeadLetterID(vs.get(DeadLetterVariable))
	if err != nil {
		return Reply{}, err
	}
	of, found, err := t.Letters.DeadLetter(ctx, id)
	switch {
	case err != nil:
		return Reply{}, err
	case !found, of.Subject.Tenant != t.tenant(): // another tenant's does not exist here
		return Reply{}, unknownLetter(strconv.Quote(id))
	}
	listed, err := header(t.Job, decisionsHeader)
	if err == nil {
		err = t.mistaken(vs, &of.Subject)
	}
	if err != nil {
		return Reply{}, err
	}
	d, err := t.Memory.ReviewSeen(ctx, &journal.ReviewJob{Subject: of.Subject, DeadLetter: id, JobKey: t.Key,
		ProcessInstanceKey: t.ProcessInstanceKey, Accepts: listsAccepted(listed)})
	switch {
	case errors.Is(err, journal.ErrDeadLetterUnknown):
		return Reply{}, unknownLetter(strconv.Quote(id))
	case err != nil:
		return Reply{}, err
	case d.Delivery == journal.DeliveryPending:
		t.Answered()
		return Reply{Action: held}, nil
	}
	t.Log.Info("a process waits for a review", zap.String("event", "review_waiting"), zap.String("deadLetterId", d.ID),
		zap.String("retryPolicy", of.Subject.Policy), zap.Int64("jobKey", t.Key),
		zap.Int64("processInstanceKey", t.ProcessInstanceKey))
	return t.keep(ctx), nil
}

// decisionsHeader lists the decisions that the process accepts, separated by commas; by default reprocess and discard
// (R33).
const decisionsHeader = "decisions"

func listsAccepted(decisions string) bool {
	return slices.ContainsFunc(strings.Split(decisions, ","), func(one string) bool {
		return strings.TrimSpace(one) == string(decision.Accepted)
	})
}

// mistaken returns the rejection of a process that waits with another subject's dead letter. It returns nil if they
// match, or if that is unknown: the policy does not exist here, or the process names no subject.
func (t *task) mistaken(vs values, s *journal.Subject) error {
	policy := t.policies[s.Policy]
	if policy == nil {
		return nil
	}
	given := vs.get(policy.IDVariable)
	if given == "" || given == "null" {
		return nil
	}
	f, rejection := policy.Read(decision.Variables{ID: given})
	switch {
	case rejection != nil:
		return rejection
	case f.ID == s.ID:
		return nil
	}
	return &decision.Rejection{Code: policy.InvalidID, Variable: policy.IDVariable, Found: strconv.Quote(f.ID),
		Expected: strconv.Quote(s.ID) + ", to which the dead letter of " + DeadLetterVariable + " belongs"}
}

// readDeadLetterID reads the variable deadLetterId.
func readDeadLetterID(v decision.Value) (id string, err error) {
	switch {
	case v == "" || v == "null":
		err = unknownLetter("missing")
	case json.Unmarshal([]byte(v), &id) != nil:
		err = unknownLetter("no text")
	case !deadletter.IsID(id):
		err = unknownLetter(strconv.Quote(id))
	}
	return id, err
}

func unknownLetter(found string) *decision.Rejection {
	return invalid(DeadLetterVariable, found, "the id of a dead letter in this worker's journal, as the BPMN errors "+
		string(decision.MaxRetriesExceeded)+" and "+string(decision.PermanentError)+" bring it")
}

// ReviewSink completes the review jobs of waiting processes with people's decisions, and records the result. It is the
// sink of the outbox queue journal.ReviewQueue. A decision that could not be delivered is sent again, and leaves the
// queue only when its end is recorded. It is safe for concurrent use.
type ReviewSink struct {
	// Options: Engine, Letters, Now (by which the decisions were recorded), Hooks and Log.
	Options
	// Record records what became of an answer (journal.Journal.Delivered).
	Record func(ctx context.Context, a *journal.Answer, taken bool) error

	mu sync.Mutex
	// since is when this sink became the only one to get the queue's messages.
	since time.Time
	// ends holds the results that are not recorded yet, by message id, so that the engine is not asked again.
	ends map[string]result
	// sent holds the messages that may have arrived.
	sent map[string]bool
}

// result is what became of an answer, and which decision it told.
type result struct {
	Action
	decision string
}

// Leads must be called when this sink's relay becomes the one that carries the queue (outbox.Relay). It forgets what
// was known before, since another sink may have worked since.
func (s *ReviewSink) Leads() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since, s.ends, s.sent = s.Now(), map[string]result{}, map[string]bool{}
}

// Publish delivers an answer and records its end, which removes the message from the queue. After an error the answer
// is to be sent again.
func (s *ReviewSink) Publish(ctx context.Context, m *journal.Message) error {
	a, err := journal.ReadAnswer(m)
	if err != nil {
		return err
	}
	end, err := s.end(ctx, m, a)
	if err != nil {
		return fmt.Errorf("complete the review job %d: %w", a.JobKey, err)
	}
	if err := s.Record(ctx, a, end == Completed || end == Unconfirmed); err != nil {
		return fmt.Errorf("record that a review job was answered: %w", err)
	}
	s.mu.Lock()
	delete(s.ends, m.ID)
	s.mu.Unlock()
	s.Hooks.Add(Answered, 1, RetryReview, string(end))
	s.report(a, end)
	return nil
}

// end returns the result of an answer, asking the engine unless it is known.
func (s *ReviewSink) end(ctx context.Context, m *journal.Message, a *journal.Answer) (Action, error) {
	s.mu.Lock()
	end, known := s.ends[m.ID]
	// An earlier leader may have sent an answer that was decided by a clock ahead of this one.
	tried := s.sent[m.ID] || m.At.Before(s.since.Add(journal.ClockTolerance))
	s.mu.Unlock()
	if known {
		a.Decision = end.decision
		return end.Action, nil
	}
	action, err := Action(""), s.update(ctx, m, a)
	if err == nil {
		action, err = s.send(ctx, a, tried)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.ends[m.ID] = result{action, a.Decision}
		delete(s.sent, m.ID)
	case kindOf(err) == Ambiguous:
		s.sent[m.ID] = true
	}
	return action, err
}

// update makes a tell that the claim has gone through, if it has since the answer was decided: it is not sent again.
func (s *ReviewSink) update(ctx context.Context, m *journal.Message, a *journal.Answer) error {
	d, found, err := s.Letters.DeadLetter(ctx, a.DeadLetter)
	switch {
	case errors.Is(err, journal.ErrUnreadable):
		return nil
	case err != nil:
		return &EngineError{NotTaken, err} // the engine was not asked
	case !found, d.Answer != a.Record, d.Delivery == journal.DeliveryTaken, // the process has told so itself
		d.State != journal.DeadLetterRecovered && d.State != journal.DeadLetterAccepted:
		return nil
	}
	now := d.AnswerMessage(m.At)
	is, err := journal.ReadAnswer(&now)
	if err == nil {
		a.Decision, a.Variables = is.Decision, is.Variables
	}
	return err
}

// send completes the job once. tried says that it may have been completed before: by a try whose answer was lost, or by
// a worker that was killed before it could record it.
func (s *ReviewSink) send(ctx context.Context, a *journal.Answer, tried bool) (Action, error) {
	action, err := sendLater(ctx, s.Engine, &Job{Key: a.JobKey, ProcessInstanceKey: a.ProcessInstanceKey, Type: RetryReview,
		TenantID: a.Subject.Tenant}, Reply{Action: Completed, Variables: string(a.Variables)})
	switch {
	case action == Superseded && tried:
		return s.guess(ctx, a)
	case action == Failed:
		s.Log.Error("the engine refuses a person's decision, so nobody carries it out",
			s.fields(a, zap.String("error", redact.Line(err.Error(), maxErrorBytes)))...)
		return Failed, nil
	}
	return action, err
}

// guess decides what became of a job that is gone and may have been completed by an earlier try. Only this worker could
// complete it. If its process runs on, or has reported an outcome, that try succeeded. If the process ended without a
// report, it was probably cancelled; the decision is then open again for a person to look at. So a decision that nobody
// carries out never counts as done.
func (s *ReviewSink) guess(ctx context.Context, a *journal.Answer) (Action, error) {
	if a.ProcessInstanceKey == 0 {
		return Superseded, nil
	}
	switch runs, err := s.Engine.Runs(ctx, a.ProcessInstanceKey); {
	case err != nil:
		return "", err
	case runs:
		return Unconfirmed, nil
	}
	d, _, err := s.Letters.DeadLetter(ctx, a.DeadLetter) // a process's report is recorded before it ends
	switch {
	case err != nil:
		return "", &EngineError{NotTaken, err} // the job was not answered
	case d.Delivery == journal.DeliveryTaken:
		return Unconfirmed, nil
	default:
		return Superseded, nil
	}
}

// report writes the log's line.
func (s *ReviewSink) report(a *journal.Answer, end Action) {
	switch end {
	case Completed:
		s.Log.Info("the process took a person's decision", s.fields(a)...)
	case Unconfirmed:
		s.Log.Warn("the process took a person's decision by an earlier try, whose answer was lost: its job is gone, and "+
			"it runs on or has said how it ended", s.fields(a)...)
	default:
		s.Log.Warn("no process waits for a person's decision", s.fields(a)...)
	}
}

func (s *ReviewSink) fields(a *journal.Answer, more ...zap.Field) []zap.Field {
	return append([]zap.Field{zap.String("event", "review_delivered"), zap.String("deadLetterId", a.DeadLetter),
		zap.String("decision", a.Decision), zap.String("retryPolicy", a.Subject.Policy),
		zap.Int64("jobKey", a.JobKey)}, more...)
}
