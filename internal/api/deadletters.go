package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// DeadLetters lists dead letters, also by their cause, and takes people's decisions on them. Its errors hold a *deadletter.Refusal, or are the
// journal's. Safe for concurrent use.
type DeadLetters interface {
	List(ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int) (items []deadletter.Item, next string, err error)
	Show(ctx context.Context, id string) (deadletter.Item, error)
	Groups(ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int) (groups []deadletter.Group, next string, err error)
	Retry(ctx context.Context, c deadletter.Command) (deadletter.Item, error)
	Discard(ctx context.Context, c deadletter.Command) (deadletter.Item, error)
}

// DeadLetterPage is one page of a list, the newest first.
type DeadLetterPage struct {
	Items []DeadLetter `json:"items"`
	// Next is the cursor of the next page; null on the last.
	Next *string `json:"next"`
}

// deadLetters answers GET /api/v1/dead-letters?state=&policy=&team=&reason=&fingerprint=&since=&until=&q=&cursor=&limit=.
func (s *API) deadLetters(w http.ResponseWriter, r *http.Request, m *Journal) {
	q, bad := readParameters(r, "state", "policy", "team", "reason", "fingerprint", "since", "until", "q", "cursor", "limit")
	limit, badLimit := q.limit()
	f, badFilter := q.filter()
	if bad := firstOf(bad, badLimit, badFilter); bad != nil {
		s.refuse(w, bad)
		return
	}
	items, next, err := m.List(r.Context(), f, q["cursor"], limit)
	if err != nil {
		s.undecided(w, r, err, cannotRead)
		return
	}
	page := DeadLetterPage{Items: make([]DeadLetter, 0, len(items)), Next: journal.OrNull(next)}
	for i := range items {
		page.Items = append(page.Items, deadLetterOf(&items[i]))
	}
	s.write(w, http.StatusOK, page)
}

// filter of a list.
func (p parameters) filter() (journal.DeadLetterFilter, *refusal) {
	since, badSince := p.instant("since")
	until, badUntil := p.instant("until")
	return journal.DeadLetterFilter{
		State: p["state"], Policy: p["policy"], Team: decision.Team(p["team"]), Reason: decision.Reason(p["reason"]),
		Fingerprint: p["fingerprint"], Since: since, Until: until, Query: p["q"],
	}, firstOf(badSince, badUntil)
}

// limit of a list; 0 where none is given.
func (p parameters) limit() (int, *refusal) {
	text, given := p["limit"]
	if !given || text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n < 1 || n > deadletter.MostItems {
		return 0, invalid("invalid_limit", "limit is %.60q, expected a whole number from 1 to %d", text, deadletter.MostItems)
	}
	return int(n), nil
}

// deadLetter answers GET /api/v1/dead-letters/{id}.
func (s *API) deadLetter(w http.ResponseWriter, r *http.Request, m *Journal) {
	if _, bad := readParameters(r); bad != nil {
		s.refuse(w, bad)
		return
	}
	item, err := m.Show(r.Context(), r.PathValue("id"))
	if err != nil {
		s.undecided(w, r, err, cannotRead)
		return
	}
	s.write(w, http.StatusOK, deadLetterOf(&item))
}

// retry answers POST /api/v1/dead-letters/{id}/retry.
func (s *API) retry(w http.ResponseWriter, r *http.Request, m *Journal) {
	f, bad := readFields(w, r, "reason", "forceRetry", "when", "fresh")
	if bad != nil {
		s.refuse(w, bad)
		return
	}
	s.carryOutRetry(w, r, m, r.PathValue("id"), f)
}

// retryJob answers POST /api/v1/jobs/retry, the request of retry-failed-job.md.
func (s *API) retryJob(w http.ResponseWriter, r *http.Request, m *Journal) {
	f, bad := readFields(w, r, "jobId", "reason", "forceRetry")
	if bad != nil {
		s.refuse(w, bad)
		return
	}
	id, bad := f.text("jobId")
	if bad == nil && id == "" {
		bad = invalid("invalid_job_id", "jobId is missing, expected the id of a dead letter")
	}
	if bad != nil {
		s.refuse(w, bad)
		return
	}
	s.carryOutRetry(w, r, m, id, f)
}

// carryOutRetry sends a dead letter again, as the fields say. Who asked for it comes from the log-in, never from them.
func (s *API) carryOutRetry(w http.ResponseWriter, r *http.Request, m *Journal, id string, f fields) {
	reason, bad := f.reason()
	force, badForce := f.truth("forceRetry")
	fresh, badFresh := f.truth("fresh")
	when, badWhen := f.text("when")
	if bad := firstOf(bad, badForce, badFresh, badWhen); bad != nil {
		s.refuse(w, bad)
		return
	}
	if s.mayReview(w, r, m, id, access.Review.Anew(fresh)) {
		s.carryOut(w, r, m.Retry, deadletter.Command{ID: id, Reason: reason, Force: force, Fresh: fresh, When: deadletter.When(when)}, "reprocess")
	}
}

// mayReview reports whether who asks may do that to the dead letter, and answers the request if not. The role goes first,
// whatever state the dead letter is in; its team never changes.
func (s *API) mayReview(w http.ResponseWriter, r *http.Request, m *Journal, id string, action access.Action) bool {
	if !s.gate.RoleAllows(w, r, action) {
		return false
	}
	item, err := m.Show(r.Context(), id)
	if err != nil {
		s.undecided(w, r, err, cannotRead)
		return false
	}
	return s.gate.Allowed(w, r, action, string(item.Team))
}

// discard answers POST /api/v1/dead-letters/{id}/discard.
func (s *API) discard(w http.ResponseWriter, r *http.Request, m *Journal) {
	f, bad := readFields(w, r, "reason")
	if bad != nil {
		s.refuse(w, bad)
		return
	}
	reason, bad := f.reason()
	if bad != nil {
		s.refuse(w, bad)
		return
	}
	if s.mayReview(w, r, m, r.PathValue("id"), access.Review) {
		s.carryOut(w, r, m.Discard, deadletter.Command{ID: r.PathValue("id"), Reason: reason}, "discard")
	}
}

// carryOut has a decision recorded, under the name that was logged in with, and answers with the dead letter as it stands
// after.
func (s *API) carryOut(w http.ResponseWriter, r *http.Request, decide func(context.Context, deadletter.Command) (deadletter.Item, error), c deadletter.Command, decision string) {
	ctx, cancel := context.WithTimeout(r.Context(), recordTime)
	defer cancel()
	c.By = access.From(ctx).Name
	item, err := decide(ctx, c)
	if err != nil {
		s.undecided(w, r, err, "the decision was not recorded for sure; send it again: if it was, the answer is invalid_retry_state with your name")
		return
	}
	s.log.Info("a dead letter was decided on", zap.String("event", "dead_letter_reviewed"), zap.String("deadLetterId", item.ID),
		zap.String("decision", decision), zap.String("by", c.By), zap.Bool("forceRetry", c.Force), zap.Bool("fresh", c.Fresh))
	s.write(w, http.StatusOK, deadLetterOf(&item))
}

// reason is a person's; empty where nothing of it can be seen.
func (f fields) reason() (string, *refusal) {
	text, bad := f.text("reason")
	if strings.IndexFunc(text, visible) < 0 {
		text = ""
	}
	return text, bad
}

// checkedReason is a person's, as the audit takes it.
func (f fields) checkedReason() (string, *refusal) {
	text, bad := f.reason()
	if bad != nil {
		return "", bad
	}
	reason, err := deadletter.CheckReason(text)
	if refused := deadletter.RefusalOf(err); refused != nil {
		return "", invalid(string(refused.Code), "%s", refused.Message)
	}
	return reason, nil
}

// statuses of the refusals; the others are 422.
var statuses = map[deadletter.Code]int{
	deadletter.JobNotFound: http.StatusNotFound, deadletter.MaxRetriesExceeded: http.StatusConflict, deadletter.InvalidRetryState: http.StatusConflict,
	deadletter.PolicyNotFound: http.StatusConflict,
	deadletter.RunNotFound:    http.StatusNotFound, deadletter.InvalidRunState: http.StatusConflict, deadletter.PlanOutdated: http.StatusConflict,
}

// undecided answers that a decision, or an answer, did not come about. unavailable is what it says where the journal is why.
func (s *API) undecided(w http.ResponseWriter, r *http.Request, err error, unavailable string) {
	if refused := deadletter.RefusalOf(err); refused != nil {
		status := statuses[refused.Code]
		if status == 0 {
			status = http.StatusUnprocessableEntity
		}
		s.fail(w, status, string(refused.Code), refused.Message)
		return
	}
	if r.Context().Err() == nil { // nobody waits for it any more otherwise
		s.log.Error("the API could not carry out a request about dead letters", zap.String("path", r.URL.Path), zap.Error(err))
	}
	if errors.Is(err, journal.ErrInvalid) {
		s.fail(w, http.StatusUnprocessableEntity, "unrecordable", "the journal cannot hold this decision; the worker's log says why")
		return
	}
	s.fail(w, http.StatusServiceUnavailable, journalUnavailable, unavailable)
}
