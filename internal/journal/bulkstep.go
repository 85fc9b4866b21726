package journal

import (
	"cmp"
	"context"
	"slices"
	"time"

	"retry-worker/internal/redact"
)

// MaxPerMinute is the most dead letters that a bulk run decides in a minute.
const MaxPerMinute = 6000

// Bulk records a step of a whole bulk run and returns the run as it stands then. Pause needs a running run, resume a
// paused one, cancel one that has not ended, finish a running one with nothing planned, and start a new id. Its errors
// are a *Refusal and those of Analyze.
func (j *Journal) Bulk(ctx context.Context, s *BulkStep) (BulkRun, error) {
	return outcomeOf(ctx, j, Lookup{Run: s.Run.ID}, func(b *batch, h *History) (BulkRun, error) { return b.bulk(s, h) })
}

// bulk applies a step.
func (b *batch) bulk(s *BulkStep, h *History) (BulkRun, error) {
	known := h.Run
	by := bounded(cmp.Or(s.By, s.Run.By))
	switch {
	case s.Verb == BulkStart && known != nil:
		return BulkRun{}, known.refuses(s.Verb)
	case s.Verb == BulkStart:
		return b.started(&s.Run, by, s.Items), nil
	case known == nil:
		return BulkRun{}, ErrBulkRunUnknown
	}
	to := steps[s.Verb]
	if !slices.Contains(to.from, known.State) || s.Verb == BulkFinish && known.Counts[BulkPlanned] > 0 {
		return BulkRun{}, known.refuses(s.Verb)
	}
	return b.stepped(known, &bulkBody{Run: known.ID, Verb: s.Verb, By: by, State: to.state}), nil
}

// steps says in which states a run allows a step, in words too, and the state that it leads to.
var steps = map[BulkVerb]struct {
	from  []BulkState
	needs string
	state BulkState
}{
	BulkStart:  {needs: "new"},
	BulkPause:  {[]BulkState{BulkRunning}, "running", BulkPaused},
	BulkResume: {[]BulkState{BulkPaused}, "paused", BulkRunning},
	BulkCancel: {[]BulkState{BulkRunning, BulkPaused}, "running or paused", BulkCancelled},
	BulkFinish: {[]BulkState{BulkRunning}, "running, with nothing planned", BulkDone},
}

// refuses refuses a step that the run's state does not allow.
func (r *BulkRun) refuses(v BulkVerb) *Refusal {
	return Refuse(InvalidRunState, "the run is %s; %s needs one that is %s", r.State, v, steps[v].needs)
}

// bulkBody is the body of a step's record.
type bulkBody struct {
	Run   string    `json:"bulkRun"`
	Verb  BulkVerb  `json:"verb"`
	By    string    `json:"by"`
	State BulkState `json:"state,omitempty"`
	// BulkRun is the run that starts; nil in other steps.
	*BulkRun
	// Items are its dead letters by their first records, in the run's order.
	Items []int64 `json:"items,omitempty"`
	// Record is the refused dead letter's, Code why it is refused.
	Record int64  `json:"record,omitempty"`
	Code   string `json:"code,omitempty"`
}

// items returns the items of a run that starts.
func (b *bulkBody) items(at time.Time) []BulkItem {
	all := make([]BulkItem, len(b.Items))
	for i, record := range b.Items {
		all[i] = BulkItem{Run: b.Run, Number: int64(i) + 1, Record: record, Outcome: BulkPlanned, ChangedAt: at}
	}
	return all
}

// started records the start of a run of these dead letters.
func (b *batch) started(r *BulkRun, by string, items []int64) BulkRun {
	begins := *r
	begins.Filter, begins.Reason = r.Filter.masked(), storable(redact.Line(r.Reason, maxReasonBytes))
	begins.Filter.State = ""
	body := &bulkBody{Run: storable(r.ID), Verb: BulkStart, By: by, State: BulkRunning, BulkRun: &begins, Items: items}
	b.changes.NewItems = append(b.changes.NewItems, body.items(b.milli())...)
	run := b.stepped(&BulkRun{}, body)
	if run.Total > 0 {
		run.Counts = map[BulkOutcome]int64{BulkPlanned: run.Total}
	}
	return run
}

// stepped records a step, and returns the run as it stands then.
func (b *batch) stepped(r *BulkRun, body *bulkBody) BulkRun {
	next := *r
	next.fold(b.next(), b.milli(), body)
	b.changes.Runs = append(b.changes.Runs, next)
	b.entry(nil, Subject{}, BulkEntry, body)
	return next
}

// StartedBy reports whether the person by started the run for that reason.
func (r *BulkRun) StartedBy(by, reason string) bool {
	return r.By == bounded(by) && r.Reason == storable(redact.Line(reason, maxReasonBytes))
}

// fold folds a step's record into the run, not into its items.
func (r *BulkRun) fold(record int64, at time.Time, b *bulkBody) {
	switch b.Verb {
	case BulkStart:
		if b.BulkRun != nil { // nil where somebody edited the record
			*r = *b.BulkRun
		}
		r.ID, r.By, r.State, r.CreatedAt, r.Begun, r.Total = b.Run, b.By, b.State, at, record, int64(len(b.Items))
		return
	case bulkRefuse:
		return
	}
	r.State = b.State
	if b.Verb != BulkFinish {
		r.ChangedBy, r.ChangedAt = b.By, at
	}
	if b.State.Ended() {
		r.EndedAt, r.Ended = at, record
	}
}

// RefuseBulkItem records that a bulk run leaves a dead letter as it is, for the reason in code. It does nothing if the
// item is no longer planned. Its errors are those of Analyze.
func (j *Journal) RefuseBulkItem(ctx context.Context, run string, number int64, code string) error {
	return j.submit(ctx, &item{lookup: Lookup{Run: run, Item: number}, apply: func(b *batch, h *History) error {
		if i := h.Item; i != nil && i.Outcome == BulkPlanned {
			b.items = append(b.items, BulkItem{Run: run, Record: i.Record, Outcome: BulkRefused, Code: code, ChangedAt: b.milli()})
			b.stepped(h.Run, &bulkBody{Run: run, Verb: bulkRefuse, Record: i.Record, Code: code})
		}
		return nil
	}})
}
