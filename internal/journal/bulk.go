package journal

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/redact"
)

// BulkAction is what a bulk run does with each of its dead letters. The set is closed.
type BulkAction string

// The actions.
const (
	BulkRetry   BulkAction = "retry"
	BulkDiscard BulkAction = "discard"
	BulkAccept  BulkAction = "accept"
)

// BulkState is where a bulk run stands. The set is closed.
type BulkState string

// The states. The last two are ends: nothing more is decided, though earlier decisions are still carried out.
const (
	BulkRunning   BulkState = "running"
	BulkPaused    BulkState = "paused" // by a person
	BulkCancelled BulkState = "cancelled"
	BulkDone      BulkState = "done" // each dead letter is decided or refused
)

// Ended reports whether the run decides nothing any more.
func (s BulkState) Ended() bool { return s == BulkCancelled || s == BulkDone }

// BulkOutcome is what is known to have become of one dead letter of a bulk run. The set is closed.
type BulkOutcome string

// The outcomes, in the order in which a dead letter may pass through them. All but Planned, Decided and Taken are
// final.
const (
	BulkPlanned    BulkOutcome = "planned"    // its turn has not come, or never came where the run was cancelled
	BulkRefused    BulkOutcome = "refused"    // nothing was done, for the reason in Code
	BulkDecided    BulkOutcome = "decided"    // the decision is recorded, and on its way to the process
	BulkTaken      BulkOutcome = "taken"      // the process took it; how its retry ends is not known yet
	BulkNobody     BulkOutcome = "nobody"     // no process waited for it any more
	BulkRecovered  BulkOutcome = "recovered"  // the retry succeeded
	BulkDeadAgain  BulkOutcome = "dead_again" // given up again: another dead letter of the subject took its place
	BulkSuperseded BulkOutcome = "superseded" // a newer episode took its place before the retry's end was known
	BulkDiscarded  BulkOutcome = "discarded"  // it was discarded, and the process took that
	BulkAccepted   BulkOutcome = "accepted"   // the other side has it already, and the process took that
)

// BulkOutcomes lists every outcome.
func BulkOutcomes() []BulkOutcome {
	return []BulkOutcome{BulkPlanned, BulkRefused, BulkDecided, BulkTaken, BulkNobody, BulkRecovered, BulkDeadAgain,
		BulkSuperseded, BulkDiscarded, BulkAccepted}
}

// DeadLetterFilter chooses dead letters. Its zero value lets the open ones through.
type DeadLetterFilter struct {
	// State of the contract: open (also where empty), reprocessing, discarded, recovered, or all; also superseded.
	State  string          `json:"state,omitempty"`
	Policy string          `json:"policy,omitempty"`
	Team   decision.Team   `json:"team,omitempty"`
	Reason decision.Reason `json:"reason,omitempty"`
	// Fingerprint of the cause (Fingerprint.ID); empty for any.
	Fingerprint string `json:"fingerprint,omitempty"`
	// IDs of dead letters that were chosen one by one, with commas between them; empty for any.
	IDs string `json:"ids,omitempty"`
	// Context is a variable=value that the claim's context must hold; empty for any.
	Context string `json:"context,omitempty"`
	// Assignee is whom they are assigned to, or Nobody; empty for anybody. FollowUp lets through those whose follow-up
	// is due before then; the zero time is no bound.
	Assignee string    `json:"assignee,omitempty"`
	FollowUp time.Time `json:"followUp,omitzero"`
	// Since and Until bound CreatedAt: Since is included, Until is not; the zero time is no bound.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// DueSince and DueUntil bound the deadline in the same way, if DueUntil is set. After leaves out records up to that
	// number.
	DueSince time.Time `json:"-"`
	DueUntil time.Time `json:"-"`
	After    int64     `json:"-"`
	// Query lets through what any of three finds: a dead letter's id, the beginning of a subject's id, or words that
	// all occur, in any order, in the error's pattern (Fingerprint.Pattern) or in the code or rule that matched. At
	// most 200 bytes and 8 words count.
	Query string `json:"q,omitempty"`
	// Sort is the order of a list: deadline, amount, age or newest; empty is by urgency (deadletter.Urgent), which Now
	// decides.
	Sort string    `json:"sort,omitempty"`
	Now  time.Time `json:"-"`
}

// Nobody is the filter's Assignee for unassigned dead letters.
const Nobody = "nobody"

// Search returns the filter's Query, trimmed and bounded, as it is searched for.
func (f *DeadLetterFilter) Search() string {
	return bounded(strings.TrimSpace(f.Query))
}

// masked returns the filter with # in place of everything that may name a person.
func (f DeadLetterFilter) masked() DeadLetterFilter {
	if f.Query != "" {
		f.Query = "#"
	}
	if variable, _, _ := strings.Cut(f.Context, "="); variable != "" {
		f.Context = variable + "=#"
	}
	if f.IDs != "" {
		f.IDs = "#" + strings.Repeat(",#", strings.Count(f.IDs, ","))
	}
	return f
}

// BulkCommand says what to do with all dead letters of a filter.
type BulkCommand struct {
	Action BulkAction `json:"action"`
	// Filter chooses among the open ones.
	Filter DeadLetterFilter `json:"filter"`
	// Reason and By are a person's words and name. Force, Fresh and When apply to each retry (R17).
	Reason string `json:"reason"`
	By     string `json:"by"`
	Force  bool   `json:"forceRetry,omitempty"`
	Fresh  bool   `json:"fresh,omitempty"`
	When   string `json:"when,omitempty"`
	// PerMinute is the most that are decided in a minute, 1 to MaxPerMinute.
	PerMinute int64 `json:"perMinute"`
}

// BulkRun is one decision on many dead letters, carried out one by one at a pace.
type BulkRun struct {
	// ID is a UUID; later ids sort later.
	ID string `json:"bulkRun"`
	// BulkCommand is what was asked for, its filter masked. Only dead letters of records up to Through are in the run.
	BulkCommand
	Through int64     `json:"through"`
	State   BulkState `json:"state"`
	// ChangedBy is who paused, resumed or cancelled it last, at ChangedAt; empty where nobody did.
	ChangedBy string    `json:"changedBy,omitempty"`
	ChangedAt time.Time `json:"changedAt,omitzero"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
	// EndedAt is when the run was cancelled or done; the zero time before.
	EndedAt time.Time `json:"endedAt,omitzero"`
	// Begun and Ended are the records of its start and its end; 0 before.
	Begun int64 `json:"begun,omitempty"`
	Ended int64 `json:"ended,omitempty"`
	// Total is the number of dead letters in it, at most MostBulkItems.
	Total int64 `json:"total,omitempty"`
	// Held reports whether it is running but decides nothing, as the engine does not answer. deadletter.Service sets it.
	Held bool `json:"-"`
	// Counts are the dead letters that are not expunged, by outcome. Counts of 0 are absent.
	Counts map[BulkOutcome]int64 `json:"-"`
}

// MostBulkItems is the most dead letters that a bulk run has.
const MostBulkItems = 10_000

// BulkItem is one dead letter of a bulk run. It is removed with the dead letter, or with its run: once that has ended
// and the record of its start is purged.
type BulkItem struct {
	Run string
	// Number is its place in the run, from 1 on, the most urgent first. Record is the dead letter's first record.
	Number, Record int64
	// DeadLetter and Subject are its id and name, filled in by the store.
	DeadLetter string
	Subject    Subject
	Outcome    BulkOutcome
	// Code is why it was refused (journal.Code); empty otherwise.
	Code string
	// ChangedAt is when Outcome last changed, DecidedAt when it was decided; the zero time where it was not.
	ChangedAt, DecidedAt time.Time
}

// Became takes the outcome from c, with its code and instants, unless it is known already how the item ended.
func (i *BulkItem) Became(c *BulkItem) {
	if i.Outcome.going() && i.Outcome != c.Outcome {
		i.Outcome, i.Code, i.ChangedAt, i.DecidedAt = c.Outcome, c.Code, c.ChangedAt, c.DecidedAt
	}
}

// going reports whether more may become of the item. One that a replica refused may be decided by another.
func (o BulkOutcome) going() bool {
	return o == BulkPlanned || o == BulkRefused || o == BulkDecided || o == BulkTaken
}

// outcome returns the outcome of a dead letter that a bulk run decided on.
func (d *DeadLetter) outcome(h *History) BulkOutcome {
	switch {
	case d.State == DeadLetterRecovered:
		return BulkRecovered
	case d.State == DeadLetterSuperseded:
		if next := h.Episode.DeadLetter; next != "" && next != d.ID {
			return BulkDeadAgain
		}
		return BulkSuperseded
	case d.State == DeadLetterOpen, d.Delivery == DeliveryNobody:
		return BulkNobody
	case d.State == DeadLetterDiscarded && d.Delivery != DeliveryPending:
		return BulkDiscarded
	case d.State == DeadLetterAccepted && d.Delivery != DeliveryPending:
		return BulkAccepted
	case d.Delivery == DeliveryTaken:
		return BulkTaken
	default:
		return BulkDecided
	}
}

// BulkVerb is what a person, or the worker itself, does to a bulk run as a whole. The set is closed.
type BulkVerb string

// The verbs.
const (
	BulkStart  BulkVerb = "start"
	BulkPause  BulkVerb = "pause"
	BulkResume BulkVerb = "resume"
	BulkCancel BulkVerb = "cancel"
	// The worker's own: nothing is left to decide, a dead letter is refused.
	BulkFinish BulkVerb = "finish"
	bulkRefuse BulkVerb = "refuse"
)

// BulkStep changes a bulk run as a whole; it is a record of the audit (EntryKind BulkEntry).
type BulkStep struct {
	Verb BulkVerb
	// Run is the run to start; the journal fills in State, the instants, Total and Counts. Other verbs need only its
	// ID.
	Run BulkRun
	// Items are the dead letters of a run to start, by their first records, in the run's order.
	Items []int64
	// By is who takes the step.
	By string
}

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
			b.items = append(b.items,
				BulkItem{Run: run, Record: i.Record, Outcome: BulkRefused, Code: code, ChangedAt: b.milli()})
			b.stepped(h.Run, &bulkBody{Run: run, Verb: bulkRefuse, Record: i.Record, Code: code})
		}
		return nil
	}})
}
