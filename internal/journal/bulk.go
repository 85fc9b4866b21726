package journal

import (
	"strings"
	"time"

	"retry-worker/internal/decision"
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

// The states. The last two are ends: nothing is decided in them any more, though what was decided goes on.
const (
	BulkRunning   BulkState = "running"
	BulkPaused    BulkState = "paused" // by a person
	BulkCancelled BulkState = "cancelled"
	BulkDone      BulkState = "done" // each of them is decided or refused
)

// Ended reports whether nothing is decided in it any more.
func (s BulkState) Ended() bool { return s == BulkCancelled || s == BulkDone }

// BulkOutcome is what became of one dead letter of a bulk run, as far as it is verified. The set is closed.
type BulkOutcome string

// The outcomes, in the order in which a dead letter may pass through them. Planned, Decided and Taken are on their way;
// the others are ends.
const (
	// BulkPlanned: its turn has not come, or never came where the run was cancelled.
	BulkPlanned BulkOutcome = "planned"
	// BulkRefused: nothing was done, for the reason in Code.
	BulkRefused BulkOutcome = "refused"
	// BulkDecided: the decision is recorded, and on its way to the process.
	BulkDecided BulkOutcome = "decided"
	// BulkTaken: the process took it; how its retry ends is not known yet.
	BulkTaken BulkOutcome = "taken"
	// BulkNobody: no process waited for it any more.
	BulkNobody BulkOutcome = "nobody"
	// BulkRecovered: the retry succeeded.
	BulkRecovered BulkOutcome = "recovered"
	// BulkDeadAgain: it failed again and was given up again: another dead letter of the subject took its place.
	BulkDeadAgain BulkOutcome = "dead_again"
	// BulkSuperseded: something newer of the subject took its place, before it was known how the retry ends.
	BulkSuperseded BulkOutcome = "superseded"
	// BulkDiscarded: it was let go, and the process took that.
	BulkDiscarded BulkOutcome = "discarded"
	// BulkAccepted: it was closed as what the other side has already, and the process took that.
	BulkAccepted BulkOutcome = "accepted"
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
	// Context is what the claim's context holds, variable=value as a dead letter has them; empty for anything.
	Context string `json:"context,omitempty"`
	// Assignee is who has them, or Nobody; empty for anybody. FollowUp lets those through that are to be looked at again
	// before then; the zero time is no bound.
	Assignee string    `json:"assignee,omitempty"`
	FollowUp time.Time `json:"followUp,omitzero"`
	// Since and Until bound the instant of birth (CreatedAt): Since is included, Until is not; the zero time is no bound.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// DueSince and DueUntil bound the deadline in the same way where DueUntil is given. Records at most After are left out.
	DueSince time.Time `json:"-"`
	DueUntil time.Time `json:"-"`
	After    int64     `json:"-"`
	// Query is a dead letter's id, the beginning of a subject's id, or words of the error: all of them, in any order, each
	// in the error without what differs from case to case (Fingerprint.Pattern), or in the code or rule that matched. What
	// any of the three finds is let through. At most 200 bytes and 8 words count.
	Query string `json:"q,omitempty"`
	// Sort is the order of a list: deadline, amount, age, newest, or what to decide first where it is empty
	// (deadletter.Urgent); Now is the instant that deadlines are near to then.
	Sort string    `json:"sort,omitempty"`
	Now  time.Time `json:"-"`
}

// Nobody is the filter's Assignee of what nobody has.
const Nobody = "nobody"

// Search returns the filter's Query as it is kept and searched for.
func (f *DeadLetterFilter) Search() string {
	return bounded(strings.TrimSpace(f.Query))
}

// masked returns the filter with # in place of what may name somebody.
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

// BulkCommand is what is to be done with all dead letters of a filter.
type BulkCommand struct {
	Action BulkAction `json:"action"`
	// Filter chooses among the open ones.
	Filter DeadLetterFilter `json:"filter"`
	// Reason and By are a person's words and name; Force, Fresh and When are those of each retry (R17).
	Reason string `json:"reason"`
	By     string `json:"by"`
	Force  bool   `json:"forceRetry,omitempty"`
	Fresh  bool   `json:"fresh,omitempty"`
	When   string `json:"when,omitempty"`
	// PerMinute is how many are decided in a minute at most, 1 to MaxPerMinute.
	PerMinute int64 `json:"perMinute"`
}

// BulkRun is one decision on many dead letters, carried out one by one at a pace.
type BulkRun struct {
	// ID is a UUID; ids that are made later sort later.
	ID string `json:"bulkRun"`
	// BulkCommand is what was asked for; what of its filter may name somebody is kept as #. Through is the record up to
	// which dead letters are in the run.
	BulkCommand
	Through int64     `json:"through"`
	State   BulkState `json:"state"`
	// Hold is why a running run decides nothing for the moment, since HeldAt: a word of bulk's closed set; empty where it
	// does.
	Hold   string    `json:"hold,omitempty"`
	HeldAt time.Time `json:"heldAt,omitzero"`
	// ChangedBy is who paused, resumed or cancelled it last, at ChangedAt; empty where nobody did.
	ChangedBy string    `json:"changedBy,omitempty"`
	ChangedAt time.Time `json:"changedAt,omitzero"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
	// EndedAt is when nothing was left to decide; the zero time before.
	EndedAt time.Time `json:"endedAt,omitzero"`
	// Begun is the record of its start, Ended that of its end; 0 before.
	Begun int64 `json:"begun,omitempty"`
	Ended int64 `json:"ended,omitempty"`
	// Total dead letters in it, at most MostBulkItems.
	Total int64 `json:"total,omitempty"`
	// Counts of those that are not expunged, by outcome. Those that are 0 are absent.
	Counts map[BulkOutcome]int64 `json:"-"`
}

// MostBulkItems dead letters are in a bulk run.
const MostBulkItems = 10_000

// BulkItem is one dead letter of a bulk run. It goes with the dead letter, or with its run: when that has ended, and the
// record of its start is purged.
type BulkItem struct {
	Run string
	// Number in the run, from 1 on, the most urgent dead letter first. Record is the one that the dead letter was born with.
	Number, Record int64
	// DeadLetter and Subject are its id and name, as a store finds them.
	DeadLetter string
	Subject    Subject
	Outcome    BulkOutcome
	// Code of a refusal (review.Code); empty otherwise.
	Code string
	// ChangedAt is when Outcome was last changed; DecidedAt the decision's instant, the zero time where there is none.
	ChangedAt, DecidedAt time.Time
}

// Became has i be what became of it, which c says.
func (i *BulkItem) Became(c *BulkItem) {
	i.Outcome, i.Code, i.ChangedAt, i.DecidedAt = c.Outcome, c.Code, c.ChangedAt, c.DecidedAt
}

// move notes what became of a bulk run's dead letter.
func (p *projection) move(h *History, t *touched) {
	d, before := t.letter, &t.before
	if d.Run == "" || before.ID == "" {
		return
	}
	from := BulkPlanned
	if before.Run == d.Run {
		from = before.outcome(h)
	}
	if to := d.outcome(h); from.going() && from != to {
		p.items = append(p.items,
			BulkItem{Run: d.Run, Record: d.Record, Outcome: to, ChangedAt: p.at, DecidedAt: d.Review.At})
	}
}

// going reports whether the outcome may change by itself.
func (o BulkOutcome) going() bool { return o == BulkPlanned || o == BulkDecided || o == BulkTaken }

// outcome of a dead letter that a bulk run decided on.
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
	// BulkFinish is the worker's own: nothing is left to decide. So are the others: a dead letter is refused, the run
	// rests.
	BulkFinish BulkVerb = "finish"
	bulkRefuse BulkVerb = "refuse"
	bulkHold   BulkVerb = "hold"
)

// BulkStep changes a bulk run as a whole; it is a record of the audit (EntryKind BulkEntry).
type BulkStep struct {
	Verb BulkVerb
	// Run to be started, whole but for what the journal knows itself (State, the instants, Total, Counts); of the other
	// verbs' runs only ID is looked at.
	Run BulkRun
	// Items are the dead letters of a run to be started, by the records that they were born with, in its order.
	Items []int64
	// By is who does it.
	By string
}
