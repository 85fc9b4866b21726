package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"retry-worker/internal/redact"
)

// What a step of a bulk run is refused with; the texts begin with the API's error codes.
var (
	ErrBulkRunUnknown  = errors.New("run_not_found")
	ErrInvalidRunState = errors.New("invalid_run_state")
)

// BulkStateError is an ErrInvalidRunState: the state that a bulk run is in does not allow the step.
type BulkStateError struct{ State BulkState }

func (e *BulkStateError) Error() string {
	return fmt.Sprintf("%v: the bulk run is %s", ErrInvalidRunState, e.State)
}

// Is reports whether e is an ErrInvalidRunState.
func (e *BulkStateError) Is(target error) bool { return target == ErrInvalidRunState }

// MaxPerMinute dead letters are decided by a bulk run in a minute at most.
const MaxPerMinute = 6000

// Bulk records a step of a whole bulk run, with an entry of the audit, and returns the run as it stands then. It
// returns as Analyze does, or ErrBulkRunUnknown or a *BulkStateError, which says why the step is not possible: pause
// needs a run that is preparing or running, resume one that is paused, cancel one that has not ended, finish one that
// is running with nothing planned; a start an id that is new.
func (j *Journal) Bulk(ctx context.Context, s *BulkStep) (BulkRun, error) {
	return outcomeOf(ctx, j, Lookup{Run: s.Run.ID}, func(b *batch, h *History) (BulkRun, error) { return b.bulk(s, h.Run) })
}

// bulk applies a step; known is the run as it stands, nil where there is none.
func (b *batch) bulk(s *BulkStep, known *BulkRun) (BulkRun, error) {
	by := bounded(cmp.Or(s.By, s.Run.By))
	switch {
	case s.Verb == BulkStart && known != nil:
		return BulkRun{}, &BulkStateError{known.State}
	case s.Verb == BulkStart:
		return b.started(&s.Run, by), nil
	case known == nil:
		return BulkRun{}, ErrBulkRunUnknown
	}
	known.Counts = maps.Clone(known.Counts)
	for i := range b.items { // of what goes before it in the transaction
		if c := &b.items[i]; c.Run == known.ID {
			known.Counts[c.From]--
			known.Counts[c.To]++
		}
	}
	maps.DeleteFunc(known.Counts, func(_ BulkOutcome, n int64) bool { return n == 0 })
	to, ok := known.after(s.Verb)
	if !ok {
		return BulkRun{}, &BulkStateError{known.State}
	}
	return b.stepped(known,
		&bulkBody{Run: known.ID, Verb: s.Verb, By: by, State: to, Action: known.Action, Total: known.Total,
			Counts: known.Counts}), nil
}

// after is the state that a step leads to; false where the run does not allow it. One that was paused before all of its
// dead letters were in it goes on preparing.
func (r *BulkRun) after(v BulkVerb) (BulkState, bool) {
	switch v {
	case BulkPause:
		return BulkPaused, r.State == BulkPreparing || r.State == BulkRunning
	case BulkResume:
		if r.StartedAt.IsZero() {
			return BulkPreparing, r.State == BulkPaused
		}
		return BulkRunning, r.State == BulkPaused
	case BulkCancel:
		return BulkCancelled, !r.State.Ended()
	case BulkFinish:
		return BulkDone, r.State == BulkRunning && r.Counts[BulkPlanned] == 0
	default:
		return "", false
	}
}

// bulkBody is the audit's word on a step. What the filter chose by is told once, with the start, but for its words, of
// which Words is a digest (BulkRun.wordsSum).
type bulkBody struct {
	Run       string                `json:"bulkRun"`
	Verb      BulkVerb              `json:"verb"`
	By        string                `json:"by"`
	State     BulkState             `json:"state,omitempty"`
	Action    BulkAction            `json:"action,omitempty"`
	Filter    *DeadLetterFilter     `json:"filter,omitempty"`
	Words     string                `json:"wordsSha256,omitempty"`
	Through   int64                 `json:"through,omitempty"`
	Reason    string                `json:"reason,omitempty"`
	Force     bool                  `json:"forceRetry,omitempty"`
	Fresh     bool                  `json:"fresh,omitempty"`
	Now       bool                  `json:"now,omitempty"`
	PerMinute int64                 `json:"perMinute,omitempty"`
	Total     int64                 `json:"total,omitempty"`
	Counts    map[BulkOutcome]int64 `json:"counts,omitempty"`
	// Items that are added, Gathered where the last of them stands, Last that none follow.
	Items    []BulkItem `json:"items,omitempty"`
	Gathered Place      `json:"gathered,omitzero"`
	Last     bool       `json:"last,omitempty"`
	// Letter is the record of the dead letter that is refused, for the reason in Code; Hold is why the run rests.
	Letter int64  `json:"letter,omitempty"`
	Code   string `json:"code,omitempty"`
	Hold   string `json:"hold,omitempty"`
}

// started records that a run begins. Its own row keeps the filter's words as they are.
func (b *batch) started(r *BulkRun, by string) BulkRun {
	run := &BulkRun{Filter: r.Filter}
	run.Filter.State, run.Filter.Query = "", r.Filter.Search()
	if run.Filter != run.Filter.withoutWords() {
		run.WordsSalt = newSalt()
	}
	told := run.Filter.withoutWords()
	return b.stepped(run,
		&bulkBody{Run: storable(r.ID), Verb: BulkStart, By: by, State: BulkPreparing, Action: r.Action,
			Filter: &told, Words: run.wordsSum(), Through: r.Through, Reason: storable(redact.Line(r.Reason, maxReasonBytes)),
			Force: r.Force, Fresh: r.Fresh, Now: r.Now, PerMinute: r.PerMinute})
}

// stepped records a step, and returns the run as it stands then.
func (b *batch) stepped(r *BulkRun, body *bulkBody) BulkRun {
	next := *r
	next.fold(b.next(), b.milli(), body)
	next.Filter, next.WordsSalt = r.Filter, r.WordsSalt
	b.changes.Runs = append(b.changes.Runs, next)
	b.entry(nil, Subject{}, BulkEntry, body, Happening{}, 0)
	return next
}

// StartedBy reports whether that person started the run for that reason.
func (r *BulkRun) StartedBy(by, reason string) bool {
	return r.By == bounded(by) && r.Reason == storable(redact.Line(reason, maxReasonBytes))
}

// fold folds a record of a bulk run: what becomes of the run itself.
func (r *BulkRun) fold(record int64, at time.Time, b *bulkBody) {
	switch b.Verb {
	case BulkStart:
		*r = BulkRun{ID: b.Run, Action: b.Action, Filter: *b.Filter, Through: b.Through, Reason: b.Reason, By: b.By,
			Force: b.Force,
			Fresh: b.Fresh, Now: b.Now, PerMinute: b.PerMinute, State: BulkPreparing, CreatedAt: at, Begun: record}
		return
	case bulkGather:
		if r.Gathered = b.Gathered; b.Last {
			if r.StartedAt = at; r.State == BulkPreparing {
				r.State = BulkRunning
			}
		}
		return
	case bulkHold:
		if r.Hold, r.HeldAt = b.Hold, at; b.Hold == "" {
			r.HeldAt = time.Time{}
		}
		return
	case bulkRefuse:
		return
	}
	r.State, r.Hold, r.HeldAt = b.State, "", time.Time{}
	if b.Verb != BulkFinish {
		r.ChangedBy, r.ChangedAt = b.By, at
	}
	if b.State.Ended() {
		r.EndedAt, r.Ended = at, record
	}
}

// GatherBulkItems adds the next of a bulk run's dead letters to it (Gatherer.GatherBulkItems); one that another
// unfinished run has planned is added as refused with busyCode.
func (j *Journal) GatherBulkItems(
	ctx context.Context, store Gatherer, run string, limit int, busyCode string,
) (bool, error) {
	return store.GatherBulkItems(ctx, run, limit, func(head Head, g *Gathering) *Changes {
		return g.Step(head, j.now(), busyCode, j.publish)
	})
}

// Gathering is what a store shows of dead letters that are to be added to a bulk run.
type Gathering struct {
	Run *BulkRun
	// Found are those that are open, the most urgent first, up to Through. Last tells that none follow.
	Found   []Candidate
	Through Place
	Last    bool
}

// Candidate is a dead letter that may be added to a bulk run. Busy tells that another has planned it.
type Candidate struct {
	Record int64
	Busy   bool
}

// Step returns the changes that add the dead letters; one that is Busy is added as refused with busyCode. publish makes
// the outbox's messages; nil where nobody listens.
func (g *Gathering) Step(head Head, at time.Time, busyCode string, publish Publisher) *Changes {
	b := newBatch(at, head, publish)
	body := &bulkBody{Run: g.Run.ID, Verb: bulkGather, Gathered: g.Through, Last: g.Last}
	for i := range g.Found {
		item := BulkItem{Number: g.Run.Total + int64(i) + 1, Letter: g.Found[i].Record, Outcome: BulkPlanned,
			ChangedAt: b.milli()}
		if g.Found[i].Busy {
			item.Outcome, item.Code = BulkRefused, busyCode
		}
		body.Items = append(body.Items, item)
		b.changes.NewItems = append(b.changes.NewItems, RunItem{g.Run.ID, item})
	}
	b.stepped(g.Run, body)
	return b.seal()
}

// RefuseBulkItem records that nothing is done with a dead letter of a bulk run, for the reason in code. One that is no
// longer planned stays as it is. It returns as Analyze does.
func (j *Journal) RefuseBulkItem(ctx context.Context, run string, number int64, code string) error {
	return j.submit(ctx, &item{lookup: Lookup{Run: run, Item: number}, apply: func(b *batch, h *History) error {
		if i := h.Item; i != nil && i.Outcome == BulkPlanned {
			b.items = append(b.items, BulkItemChange{Run: run, Letter: i.Letter, From: BulkPlanned, To: BulkRefused,
				Code: code, ChangedAt: b.milli()})
			b.stepped(h.Run, &bulkBody{Run: run, Verb: bulkRefuse, Letter: i.Letter, Code: code})
		}
		return nil
	}})
}

// HoldBulkRun records why a running bulk run decides nothing for the moment; empty where it goes on. What holds it
// already keeps its instant. It returns as Analyze does.
func (j *Journal) HoldBulkRun(ctx context.Context, run, why string) error {
	return j.submit(ctx, &item{lookup: Lookup{Run: run}, apply: func(b *batch, h *History) error {
		if r := h.Run; r != nil && r.State == BulkRunning && r.Hold != why {
			b.stepped(r, &bulkBody{Run: run, Verb: bulkHold, Hold: why})
		}
		return nil
	}})
}
