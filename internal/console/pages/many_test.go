package pages_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"retry-worker/internal/bulk"
	"retry-worker/internal/journal"
	"retry-worker/internal/review"
)

// many stands in for bulk.Service: it plans over a world, and its runs go on when a test says so.
type many struct {
	world *world

	mu    sync.Mutex
	runs  []*journal.BulkRun // the newest first
	items map[string][]journal.BulkItem
	asked []bulk.Command
	// fails is what each call answers; nil for what it would answer by itself.
	fails error
}

func newMany(w *world) *many { return &many{world: w, items: map[string][]journal.BulkItem{}} }

func refusal(code review.Code, text string) error { return &review.Refusal{Code: code, Message: text} }

// matching are the open dead letters that f lets through, the oldest first.
func (m *many) matching(f journal.DeadLetterFilter) []journal.DeadLetterItem {
	f.State = ""
	items, _, err := m.world.DeadLetterPage(context.Background(), f, "", 200)
	if err != nil {
		m.world.t.Fatal(err)
	}
	slices.Reverse(items)
	return items
}

// refused is why d would not be decided; empty where it would.
func (m *many) refused(c *bulk.Command, d *journal.DeadLetterItem) review.Code {
	for _, r := range m.runs {
		if r.State == journal.BulkDone || r.State == journal.BulkCancelled {
			continue
		}
		if slices.ContainsFunc(m.items[r.ID], func(i journal.BulkItem) bool {
			return i.DeadLetter == d.ID && i.Outcome == journal.BulkPlanned
		}) {
			return bulk.InOtherRun
		}
	}
	switch {
	case c.Action == journal.BulkDiscard:
		return ""
	case m.world.reviewer().Process(d) != review.Waiting:
		return review.InvalidRetryState
	case d.RetryCount >= d.MaxRetries && !c.Force:
		return review.MaxRetriesExceeded
	}
	return ""
}

func (m *many) Plan(ctx context.Context, c bulk.Command) (bulk.Plan, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails != nil {
		return bulk.Plan{}, m.fails
	}
	if c.PerMinute < 1 || c.PerMinute > bulk.MostPerMinute {
		return bulk.Plan{}, refusal(bulk.InvalidPace, "pace")
	}
	if c.Filter.Fingerprint == "none" {
		return bulk.Plan{}, refusal(review.InvalidFingerprint, "fingerprint")
	}
	p := bulk.Plan{Command: c}
	why, ready, ids := map[review.Code]int64{}, map[bulk.Tally]int64{}, []string{}
	items := m.matching(c.Filter)
	for i := range items {
		d := &items[i]
		p.Total, p.Newest = p.Total+1, d.CreatedAt
		if p.Oldest.IsZero() {
			p.Oldest = d.CreatedAt
		}
		ids = append(ids, d.ID)
		if code := m.refused(&c, d); code != "" {
			why[code]++
			continue
		}
		p.Ready++
		ready[bulk.Tally{Policy: d.Subject.Policy, Team: d.Team, Reason: d.Reason}]++
	}
	for code, n := range why {
		p.Refused = append(p.Refused, bulk.Refused{Code: code, Message: "in English", N: n})
	}
	for t, n := range ready {
		t.N = n
		p.Tallies = append(p.Tallies, t)
	}
	p.Causes, _, _ = m.world.DeadLetterGroups(ctx, c.Filter, "", bulk.MostCauses)
	p.Takes = time.Duration(p.Ready) * time.Minute / time.Duration(c.PerMinute)
	p.Token = fmt.Sprintf("%s %v %v %d %s", c.Action, c.Force, c.When, c.PerMinute, strings.Join(ids, ","))
	return p, nil
}

func (m *many) Start(ctx context.Context, c bulk.Command, token string) (journal.BulkRun, error) {
	if strings.TrimSpace(c.Reason) == "" {
		return journal.BulkRun{}, refusal(review.ReasonRequired, "reason")
	}
	p, err := m.Plan(ctx, c)
	if err != nil {
		return journal.BulkRun{}, err
	}
	if p.Token != token {
		return journal.BulkRun{}, refusal(bulk.PlanOutdated, "other dead letters")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, c)
	at := m.world.now()
	run := &journal.BulkRun{ID: fmt.Sprintf("019c0000-0000-7000-8000-%012d", len(m.runs)+1), Action: c.Action, Filter: c.Filter, Reason: c.Reason, By: c.By, Force: c.Force,
		Fresh: c.Fresh, Now: c.When == review.Now, PerMinute: c.PerMinute, State: journal.BulkRunning, CreatedAt: at, StartedAt: at, Total: p.Total}
	for i, d := range m.matching(c.Filter) {
		item := journal.BulkItem{Number: int64(i + 1), DeadLetter: d.ID, Subject: d.Subject, Outcome: journal.BulkPlanned, ChangedAt: at}
		if code := m.refused(&c, &d); code != "" {
			item.Outcome, item.Code = journal.BulkRefused, string(code)
		}
		m.items[run.ID] = append(m.items[run.ID], item)
	}
	m.runs = append([]*journal.BulkRun{run}, m.runs...)
	m.count(run)
	return *run, nil
}

// count brings a run's counts up to date.
func (m *many) count(r *journal.BulkRun) {
	r.Counts = map[journal.BulkOutcome]int64{}
	for _, i := range m.items[r.ID] {
		r.Counts[i.Outcome]++
	}
}

// becomes gives the next n planned items of the newest run an outcome.
func (m *many) becomes(n int, outcome journal.BulkOutcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[0]
	for i := range m.items[r.ID] {
		if item := &m.items[r.ID][i]; n > 0 && item.Outcome == journal.BulkPlanned {
			item.Outcome, item.ChangedAt, item.DecidedAt = outcome, m.world.now(), m.world.now()
			n--
		}
	}
	m.count(r)
	if r.Counts[journal.BulkPlanned] == 0 && r.State == journal.BulkRunning {
		r.State, r.EndedAt = journal.BulkDone, m.world.now()
	}
}

// newest run, to be changed by a test.
func (m *many) newest() *journal.BulkRun { return m.runs[0] }

func (m *many) steer(id, by string, to journal.BulkState, from ...journal.BulkState) (journal.BulkRun, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails != nil {
		return journal.BulkRun{}, m.fails
	}
	for _, r := range m.runs {
		if r.ID != id {
			continue
		}
		if !slices.Contains(from, r.State) {
			return journal.BulkRun{}, refusal(bulk.InvalidRunState, "wrong state")
		}
		r.State, r.ChangedBy, r.ChangedAt = to, by, m.world.now()
		return *r, nil
	}
	return journal.BulkRun{}, refusal(bulk.RunNotFound, "no run")
}

func (m *many) Pause(_ context.Context, id, by string) (journal.BulkRun, error) {
	return m.steer(id, by, journal.BulkPaused, journal.BulkRunning, journal.BulkPreparing)
}

func (m *many) Resume(_ context.Context, id, by string) (journal.BulkRun, error) {
	return m.steer(id, by, journal.BulkRunning, journal.BulkPaused)
}

func (m *many) Cancel(_ context.Context, id, by string) (journal.BulkRun, error) {
	return m.steer(id, by, journal.BulkCancelled, journal.BulkRunning, journal.BulkPreparing, journal.BulkPaused)
}

func (m *many) Run(_ context.Context, id string) (journal.BulkRun, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.runs {
		if r.ID == id {
			return *r, nil
		}
	}
	return journal.BulkRun{}, refusal(bulk.RunNotFound, "no run")
}

func (m *many) Runs(_ context.Context, cursor string, limit int) (runs []journal.BulkRun, next string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from := 0
	if cursor != "" {
		if from = slices.IndexFunc(m.runs, func(r *journal.BulkRun) bool { return r.ID == cursor }) + 1; from == 0 {
			return nil, "", refusal(review.InvalidCursor, "cursor")
		}
	}
	for _, r := range m.runs[from:] {
		if len(runs) == limit {
			return runs, runs[limit-1].ID, nil
		}
		runs = append(runs, *r)
	}
	return runs, "", nil
}

func (m *many) Items(_ context.Context, id string, outcome journal.BulkOutcome, after int64, limit int) ([]journal.BulkItem, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var items []journal.BulkItem
	for _, i := range m.items[id] {
		if i.Number > after && (outcome == "" || i.Outcome == outcome) && len(items) < limit {
			items = append(items, i)
		}
	}
	return items, nil
}

// begin starts a run on everything that f lets through.
func (m *many) begin(f journal.DeadLetterFilter, perMinute int64, reason string) *journal.BulkRun {
	m.world.t.Helper()
	c := bulk.Command{Action: journal.BulkRetry, Filter: f, PerMinute: perMinute, When: review.Now, Reason: reason, By: "marta.lima"}
	p, err := m.Plan(context.Background(), c)
	if err != nil {
		m.world.t.Fatal(err)
	}
	if _, err := m.Start(context.Background(), c, p.Token); err != nil {
		m.world.t.Fatal(err)
	}
	return m.newest()
}

// locked has n claims die of one credential, and some of other things; their processes wait.
func locked(w *world, n int) {
	for i := range n {
		w.fails("tiss-submission", fmt.Sprintf("CLM-T-%04d", i), fmt.Sprintf("LoginInvalido: usuário %d bloqueado", 1000+i))
		w.pass(time.Second)
		w.awaits(w.items()[0].ID)
	}
	w.fails("tiss-submission", "CLM-T-9999", "INVALID_PATIENT_DATA: carteira")
	w.awaits(w.items()[0].ID)
}
