// Package deadletter lists, groups and shows dead letters, and carries out people's decisions on them (R17): on one
// at once, or on many at a pace.
//
// The API, the console and the command line share it, and it imports none of them. The worker answers the jobs by
// which processes wait (worker/review.go).
package deadletter

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
)

// Item is a dead letter with its error and the state of its review.
type Item struct {
	journal.DeadLetter
	// Error is the redacted error of the attempt that created it; empty if a process reported the failure.
	Error          string
	Classification decision.ErrorClassification
	MatchedRule    string
	// Process says whether a process waits for the decision. Late reports whether the dead letter is open past its
	// deadline. The Service sets both; a Store knows neither.
	Process Process
	Late    bool
}

// ForceNeeded reports whether a retry needs Force: the limit is reached, or the deadline has passed.
func (i *Item) ForceNeeded() bool { return i.AtLimit() || i.Late }

// Count counts the dead letters that share cause, policy, state, team, reason and assignee.
type Count struct {
	Fingerprint, Policy string
	State               journal.DeadLetterState
	Team                decision.Team
	Reason              decision.Reason
	Assignee            string // empty for nobody
	N                   int64
	Cents               int64 // their total amount
	// Oldest and Newest are when the first and the last of them were created. Last is the newest one's record.
	Oldest, Newest time.Time
	Last           int64
}

// Add adds the dead letters that o counts.
func (c *Count) Add(o *Count) {
	c.N, c.Cents, c.Last = c.N+o.N, c.Cents+o.Cents, max(c.Last, o.Last)
	if c.Oldest.IsZero() || o.Oldest.Before(c.Oldest) {
		c.Oldest = o.Oldest
	}
	if o.Newest.After(c.Newest) {
		c.Newest = o.Newest
	}
}

// SumBy adds up the counts for which key returns the same: some fields of the count. The sums have these fields. They
// are sorted, the largest first, then by these fields.
func SumBy(counts []Count, key func(c *Count) Count) []Count {
	sums := map[Count]*Count{}
	for i := range counts {
		of := key(&counts[i])
		if sums[of] == nil {
			sums[of] = new(of)
		}
		sums[of].Add(&counts[i])
	}
	all := journal.Views(slices.Collect(maps.Values(sums)), func(sum **Count) Count { return **sum })
	slices.SortFunc(all, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Fingerprint, b.Fingerprint), cmp.Compare(a.Policy, b.Policy),
			cmp.Compare(a.Team, b.Team), cmp.Compare(a.Reason, b.Reason))
	})
	return all
}

// Reader reads dead letters while others write them. Its errors hold a *journal.StoreError. Every method is safe for
// concurrent use.
type Reader interface {
	// DeadLetter returns the dead letter with that id; false if there is none.
	DeadLetter(ctx context.Context, id string) (Item, bool, error)
	// DeadLetterPage returns the dead letters that match the filter, in its order, after the cursor (empty: from the
	// first): at most limit, which is clamped to 1 to MostItems. next is empty if no more follow. A dead letter that
	// Weigh moves between two pages may be returned twice or not at all. The error is ErrBadCursor, or holds a
	// *journal.StoreError.
	DeadLetterPage(
		ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int,
	) (items []Item, next string, err error)
	// DeadLettersOf returns the dead letters of those records, in order. Records without one are left out.
	DeadLettersOf(ctx context.Context, records []int64) ([]Item, error)
	// DeadLetterCounts counts the dead letters that match the filter, sorted by Count's fields. Its cost grows with the
	// number of dead letters in the filter's state.
	DeadLetterCounts(ctx context.Context, f journal.DeadLetterFilter) ([]Count, error)
}

// BulkStore reads bulk runs, and the dead letters for new ones, while others use the store. Its errors hold a
// *journal.StoreError. Every method is safe for concurrent use.
type BulkStore interface {
	// DeadLettersOpen returns the open dead letters that match f (its State is ignored) with a record of at most through
	// (0: the journal's last), ordered by record, at most limit. upTo is the last record it looked at. Error,
	// Classification and MatchedRule are not set.
	DeadLettersOpen(
		ctx context.Context, f journal.DeadLetterFilter, through int64, limit int,
	) (open []Item, upTo int64, err error)
	// BulkRun returns the run with that id; false if there is none.
	BulkRun(ctx context.Context, id string) (journal.BulkRun, bool, error)
	// BulkRuns returns at most limit runs with ids below after (empty: any), the greatest ids first.
	BulkRuns(ctx context.Context, after string, limit int) ([]journal.BulkRun, error)
	// ActiveBulkRuns returns the runs that are running or paused, the oldest first.
	ActiveBulkRuns(ctx context.Context) ([]journal.BulkRun, error)
	// BulkItems returns a run's items with that outcome (empty: any) and a number above after, in order, at most limit.
	BulkItems(
		ctx context.Context, run string, outcome journal.BulkOutcome, after int64, limit int,
	) ([]journal.BulkItem, error)
}

// Store is what a Service reads.
type Store interface {
	Reader
	BulkStore
	journal.Reader
}

// AlertAbove is how many dead letters, over all policies, may be open before an alert fires (TRD-0003).
const AlertAbove = 100

// Service lists dead letters, takes decisions on them, and plans, starts, steers and shows bulk runs. Its errors hold
// a *journal.Refusal, or are the journal's: then the request may have taken effect, and sending it again shows whether
// it did. Safe for concurrent use. The caller checks permissions.
type Service struct {
	store    Store
	memory   *journal.Journal
	policies func() decision.Policies
	now      func() time.Time
	engineUp func() time.Time
}

// New returns a Service over store that records in memory. policies returns those in force. engineUp returns since
// when the engine has answered this worker; the zero time if it does not answer.
func New(
	store Store, memory *journal.Journal, policies func() decision.Policies, now, engineUp func() time.Time,
) *Service {
	return &Service{store, memory, policies, now, engineUp}
}

// Process says whether a process waits for a decision on a dead letter. The set is closed.
type Process string

// The states of a process.
const (
	Waiting  Process = "waiting"  // its review job is known
	Expected Process = "expected" // its review job has not come yet, and still may
	Nobody   Process = "nobody"   // its review job did not come in time, or the engine no longer knows it
	Answered Process = "answered" // it has got its answer, or the subject went on without one
)

// ExpectedFor is how long a process may take to reach its review task, once its dead letter exists and the engine is
// up.
const ExpectedFor = 60 * time.Second

// Process says, as far as is known now, whether a process waits for a decision on d.
func (s *Service) Process(d *journal.DeadLetter) Process {
	since, up := d.CreatedAt, s.engineUp()
	switch {
	case d.Delivery == journal.DeliveryNobody:
		return Nobody
	case d.Delivery == journal.DeliveryTaken, d.State != journal.DeadLetterOpen && d.Delivery != journal.DeliveryPending:
		return Answered
	case d.ReviewJobKey != 0:
		return Waiting
	case up.IsZero(): // no job can come
		return Expected
	}
	if up.After(since) {
		since = up
	}
	if s.now().Sub(since) < ExpectedFor {
		return Expected
	}
	return Nobody
}

// The codes of refusals besides the journal's that others name. Those about one field are invalid_ with its name.
const (
	ReasonRequired  journal.Code = "reason_required"
	ReasonTooLong   journal.Code = "reason_too_long"
	PolicyNotFound  journal.Code = "policy_not_found" // no backoff to compute
	InvalidWhen     journal.Code = "invalid_when"
	InvalidProtocol journal.Code = "invalid_protocol_number"
	InvalidAssignee journal.Code = "invalid_assignee"
	InvalidTeam     journal.Code = "invalid_team"
	InvalidPace     journal.Code = "invalid_pace"
	InvalidPlan     journal.Code = "invalid_plan"
	InvalidFilter   journal.Code = "invalid_filter" // it matches more than a run may have
	CauseNotFound   journal.Code = "cause_not_found"
	PlanOutdated    journal.Code = "plan_outdated"  // the filter no longer matches what was planned
	NothingToDo     journal.Code = "nothing_to_do"  // the filter matches nothing, or each match would be refused
	NotRecordable   journal.Code = "not_recordable" // the journal can never hold the decision on that dead letter
)

// invalid refuses the value of a field. The code is invalid_follow_up for followUp.
func invalid(field string, value any, expected string) *journal.Refusal {
	return journal.Refuse(journal.Code("invalid_"+text.Apart(field, "_")), "%s is %.60q, expected %s", field, value, expected)
}

var (
	errCauseNotFound = journal.Refuse(CauseNotFound,
		"no failure had this cause; GET /api/v1/causes and `retry-worker causes list` have their ids")
	// ErrNoProtocol refuses a protocol number, without repeating it: it may be a person's.
	ErrNoProtocol = journal.Refuse(InvalidProtocol,
		"protocolNumber is no number of a protocol, expected at most 40 letters, digits, dots, slashes and hyphens")
)

// MaxReason is how many characters a reason may have: the audit keeps all of them.
const MaxReason = 500

// CheckReason returns s without white space and invisible characters at its ends. The error is a *journal.Refusal if
// nothing is left, or more than MaxReason characters are.
func CheckReason(s string) (string, error) {
	s = strings.TrimFunc(strings.ToValidUTF8(s, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || text.Hidden(r) || r == utf8.RuneError
	})
	switch {
	case s == "":
		return "", journal.Refuse(ReasonRequired, "a reason is required; say in a few words why")
	case utf8.RuneCountInString(s) > MaxReason:
		return "", journal.Refuse(ReasonTooLong, "the reason has more than %d characters; say it in fewer", MaxReason)
	}
	return s, nil
}

// NoticeQueue is the outbox's queue of notices to teams (RN-BIL-005 §9.2, §9.3, R21). A message's key is team/way.
const NoticeQueue = "notices"

// NoticeKind is what a notice is about. The set is closed.
type NoticeKind string

// The kinds.
const (
	NewsNotice   NoticeKind = "news"    // dead letters that came since the last one
	DigestNotice NoticeKind = "digest"  // the daily review of RN-BIL-005 §7.2
	CausesNotice NoticeKind = "causes"  // causes that are new, or back
	OutageNotice NoticeKind = "outage:" // outages of the destination whose name follows
)

// Watermark is how far a team's receiver (its webhook or one address) has been told. One with a zero At was never
// stored.
type Watermark struct {
	Team    decision.Team
	Channel string
	Kind    NoticeKind
	// Record is, for news, the last record told; for an outage, 1 once its end was told; otherwise 0.
	Record int64
	// Day is the last digest's in the teams' time zone, such as 2026-11-21; otherwise empty.
	Day string
	// At is when the watermark was moved; for an outage, when that began; for causes, News.At of the last one told.
	At time.Time
}

// NoticeStore keeps watermarks. Its errors hold a *journal.StoreError. Every method is safe for concurrent use.
type NoticeStore interface {
	// Watermarks returns all watermarks, sorted by team, channel and kind.
	Watermarks(ctx context.Context) ([]Watermark, error)
	// MoveWatermark replaces from by to, of the same team, channel and kind, and puts m, unless it is nil, into the
	// outbox: both or neither. It does nothing and returns false if the watermark is no longer from, or if a message
	// with m's queue and key still waits, so that news gathers instead of piling up.
	MoveWatermark(ctx context.Context, from, to Watermark, m *journal.Message) (bool, error)
	// TellCause stores c.News as what was reported of a cause (R34), and sets its At later than every other's. It does
	// nothing and returns false if the cause did not begin at c.Began, or its news was reported already.
	TellCause(ctx context.Context, c *journal.Cause) (bool, error)
}
