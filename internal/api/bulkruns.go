package api

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// commandFields of a plan, and of a start, which has reason and token too.
var commandFields = []string{"action", "filter", "forceRetry", "fresh", "when", "perMinute"}

// planBulk answers POST /api/v1/bulk-runs/plan.
func (s *API) planBulk(w http.ResponseWriter, r *http.Request, m *Journal) {
	f, bad := readFields(w, r, commandFields...)
	if bad != nil {
		s.refuse(w, bad)
		return
	}
	c, bad := f.command()
	if bad != nil {
		s.refuse(w, bad)
		return
	}
	plan, err := m.Bulk.Plan(r.Context(), c)
	if err != nil {
		s.undecided(w, r, err, cannotRead)
		return
	}
	s.write(w, http.StatusOK, planOf(&plan))
}

// startBulk answers POST /api/v1/bulk-runs. Who asked for it comes from the log-in.
func (s *API) startBulk(w http.ResponseWriter, r *http.Request, m *Journal) {
	f, bad := readFields(w, r, append([]string{"reason", "token"}, commandFields...)...)
	if bad != nil {
		s.refuse(w, bad)
		return
	}
	c, bad := f.command()
	reason, badReason := f.reason()
	token, badToken := f.token()
	if bad := firstOf(bad, badReason, badToken); bad != nil {
		s.refuse(w, bad)
		return
	}
	if !s.gate.Allowed(w, r, access.Bulk.Anew(c.Fresh), string(c.Filter.Team)) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), recordTime)
	defer cancel()
	c.Reason, c.By = reason, access.From(ctx).Name
	run, started, err := m.Bulk.Start(ctx, c, token)
	if err != nil {
		s.undecided(w, r, err, "the run was not started for sure; send it again: if it was, the answer is that run")
		return
	}
	w.Header().Set("Location", "/api/v1/bulk-runs/"+run.ID)
	if !started {
		s.write(w, http.StatusOK, bulkRunOf(&run))
		return
	}
	s.log.Info("a bulk run was started", zap.String("event", "bulk_run_started"), zap.String("runId", run.ID), zap.String("action", string(run.Action)),
		zap.String("by", c.By), zap.Int64("perMinute", run.PerMinute), zap.Bool("forceRetry", run.Force), zap.Bool("fresh", run.Fresh))
	s.write(w, http.StatusCreated, bulkRunOf(&run))
}

// bulkRuns answers GET /api/v1/bulk-runs?cursor=&limit=.
func (s *API) bulkRuns(w http.ResponseWriter, r *http.Request, m *Journal) {
	q, bad := readParameters(r, "cursor", "limit")
	limit, badLimit := q.limit()
	if bad := firstOf(bad, badLimit); bad != nil {
		s.refuse(w, bad)
		return
	}
	runs, next, err := m.Bulk.Runs(r.Context(), q["cursor"], limit)
	if err != nil {
		s.undecided(w, r, err, cannotRead)
		return
	}
	page := BulkRunPage{make([]BulkRun, len(runs)), journal.OrNull(next)}
	for i := range runs {
		page.Items[i] = bulkRunOf(&runs[i])
	}
	s.write(w, http.StatusOK, page)
}

// runID is the id in a path, in whatever case.
func runID(r *http.Request) string { return strings.ToLower(r.PathValue("id")) }

// bulkRun answers GET /api/v1/bulk-runs/{id}.
func (s *API) bulkRun(w http.ResponseWriter, r *http.Request, m *Journal) {
	if _, bad := readParameters(r); bad != nil {
		s.refuse(w, bad)
		return
	}
	run, err := m.Bulk.Run(r.Context(), runID(r))
	if err != nil {
		s.undecided(w, r, err, cannotRead)
		return
	}
	s.write(w, http.StatusOK, bulkRunOf(&run))
}

// bulkItems answers GET /api/v1/bulk-runs/{id}/items?outcome=&after=&limit=.
func (s *API) bulkItems(w http.ResponseWriter, r *http.Request, m *Journal) {
	q, bad := readParameters(r, "outcome", "after", "limit")
	limit, badLimit := q.limit()
	outcome, badOutcome := q.outcome()
	after, badAfter := q.after()
	if bad := firstOf(bad, badLimit, badOutcome, badAfter); bad != nil {
		s.refuse(w, bad)
		return
	}
	limit = cmp.Or(limit, deadletter.DefaultItems)
	items, err := m.Bulk.Items(r.Context(), runID(r), outcome, after, limit)
	if err != nil {
		s.undecided(w, r, err, cannotRead)
		return
	}
	page := BulkItemPage{Items: make([]BulkItem, len(items))}
	for i := range items {
		page.Items[i] = bulkItemOf(&items[i])
	}
	if len(items) >= limit {
		page.Next = &items[len(items)-1].Number
	}
	s.write(w, http.StatusOK, page)
}

// steerBulk answers POST /api/v1/bulk-runs/{id}/pause, …/resume and …/cancel.
func (s *API) steerBulk(verb journal.BulkVerb) func(http.ResponseWriter, *http.Request, *Journal) {
	return func(w http.ResponseWriter, r *http.Request, m *Journal) {
		if _, bad := readFields(w, r); bad != nil {
			s.refuse(w, bad)
			return
		}
		run, err := m.Bulk.Run(r.Context(), runID(r))
		if err != nil {
			s.undecided(w, r, err, cannotRead)
			return
		}
		if !s.gate.Allowed(w, r, access.Bulk.Anew(run.Fresh), string(run.Filter.Team)) {
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), recordTime)
		defer cancel()
		by := access.From(ctx).Name
		run, err = m.Bulk.Steer(ctx, runID(r), verb, by)
		if err != nil {
			s.undecided(w, r, err, "that was not recorded for sure; the run says in which state it is")
			return
		}
		s.log.Info("a bulk run was changed", zap.String("event", "bulk_run_changed"), zap.String("runId", run.ID), zap.String("verb", string(verb)),
			zap.String("by", by), zap.String("state", string(run.State)))
		s.write(w, http.StatusOK, bulkRunOf(&run))
	}
}

// command is what the fields ask for; reason, person and token apart.
func (f fields) command() (deadletter.BulkCommand, *refusal) {
	action, badAction := f.text("action")
	filter, badFilter := f.filter()
	force, badForce := f.truth("forceRetry")
	fresh, badFresh := f.truth("fresh")
	when, badWhen := f.text("when")
	pace, badPace := f.pace()
	return deadletter.BulkCommand{
		Action: journal.BulkAction(action), Filter: filter, Force: force, Fresh: fresh, When: deadletter.When(when), PerMinute: pace,
	}, firstOf(badAction, badFilter, badForce, badFresh, badWhen, badPace)
}

// filter must be there: {} is all that is open, and must be meant.
func (f fields) filter() (journal.DeadLetterFilter, *refusal) {
	inner, bad := f.object("filter", "policy", "team", "reason", "fingerprint", "q", "since", "until")
	if bad != nil {
		return journal.DeadLetterFilter{}, bad
	}
	policy, badPolicy := inner.name("policy")
	team, badTeam := inner.name("team")
	reason, badReason := inner.name("reason")
	fingerprint, badFingerprint := inner.name("fingerprint")
	query, badQuery := inner.name("q")
	since, badSince := inner.instant("since")
	until, badUntil := inner.instant("until")
	return journal.DeadLetterFilter{
		Policy: policy, Team: decision.Team(team), Reason: decision.Reason(reason), Fingerprint: fingerprint, Query: query, Since: since, Until: until,
	}, firstOf(badPolicy, badTeam, badReason, badFingerprint, badQuery, badSince, badUntil)
}

// pace is the field perMinute; 0 where it is not there, or null.
func (f fields) pace() (int64, *refusal) {
	var n *float64
	if raw := f["perMinute"]; len(raw) > 0 && (json.Unmarshal(raw, &n) != nil || n != nil && !(*n >= 1 && *n <= journal.MaxPerMinute && *n == math.Trunc(*n))) {
		return 0, invalid(string(deadletter.InvalidPace), "perMinute is %.60s, expected a whole number from 1 to %d, or none for %d", raw, journal.MaxPerMinute, deadletter.DefaultPerMinute)
	}
	if n == nil {
		return 0, nil
	}
	return int64(*n), nil
}

// token is a plan's.
func (f fields) token() (string, *refusal) {
	token, bad := f.text("token")
	if bad != nil || token == "" {
		return "", invalid(string(deadletter.InvalidPlan), "token is no text, expected the token of a plan of the very same command (POST /api/v1/bulk-runs/plan)")
	}
	return token, nil
}

// outcome of a run's items; empty where none is given.
func (p parameters) outcome() (journal.BulkOutcome, *refusal) {
	o := journal.BulkOutcome(p["outcome"])
	if o != "" && !slices.Contains(journal.BulkOutcomes(), o) {
		return "", invalid("invalid_outcome", "outcome is %.60q, expected one of %s, or none", o, strings.Join(texts(journal.BulkOutcomes()), ", "))
	}
	return o, nil
}

// after is the number of an item; 0 where none is given.
func (p parameters) after() (int64, *refusal) {
	if p["after"] == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(p["after"], 10, 63)
	if err != nil {
		return 0, invalid("invalid_after", "after is %.60q, expected the number that a page gave as next", p["after"])
	}
	return int64(n), nil
}

// texts are words of a closed set.
func texts[T ~string](all []T) []string {
	list := make([]string, len(all))
	for i := range all {
		list[i] = string(all[i])
	}
	return list
}
