package deadletter

import (
	"context"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// NoticeQueue is the outbox's queue of what teams are told (RN-BIL-005 §9.2, §9.3, R21). A message's key is
// team/channel.
const NoticeQueue = "notices"

// NoticeKind is what a team is told of. The set is closed.
type NoticeKind string

// The kinds.
const (
	// NewsNotice tells of dead letters that came since the last one.
	NewsNotice NoticeKind = "news"
	// DigestNotice is the daily review of RN-BIL-005 §7.2.
	DigestNotice NoticeKind = "digest"
	// OutageNotice, with a destination's name behind it, tells of its outages.
	OutageNotice NoticeKind = "outage:"
)

// Watermark is how far a team has been told by one channel. One without At was never kept.
type Watermark struct {
	Team    decision.Team
	Channel string
	Kind    NoticeKind
	// Record up to which dead letters have been told, of news; of an outage 1 once its end was; 0 of digests.
	Record int64
	// Day of the last digest, such as 2026-11-21 where the teams live; empty of news.
	Day string
	// At is when the watermark was moved; of an outage, when that began.
	At time.Time
}

// NoticeCount sums up dead letters of one team that are open.
type NoticeCount struct {
	// N dead letters of so many Causes, and what they are worth.
	N, Causes, Cents int64
	// Oldest is when the first of them was born; the zero time where there is none.
	Oldest time.Time
	// Top are the causes with the most.
	Top []NoticeCause
	// Through is the last record that was looked at; 0 in an empty journal.
	Through int64
	// Older are how many were born before each of the instants that were asked for, as exactly as the writers' clocks
	// agree.
	Older []int64
}

// NoticeCause are dead letters of one team with one cause.
type NoticeCause struct {
	// Reason of the dead letters, which is another than the cause's where they died by a limit.
	Reason decision.Reason
	// Cause by its Policy, ID, Reason, Classification and Pattern; where it is not known, Policy alone.
	Cause journal.Fingerprint
	// N of them, and what they are worth.
	N, Cents int64
	// Oldest is when the first of them was born.
	Oldest time.Time
}

// NoticeStore keeps how far teams were told. Its errors hold a *journal.StoreError. Every method is safe for
// concurrent use.
type NoticeStore interface {
	// Watermarks are all that were kept, in the order of team, channel and kind.
	Watermarks(ctx context.Context) ([]Watermark, error)
	// NewDeadLetters are those of a team with a record above after that are open. Its cost grows with how many those are.
	NewDeadLetters(ctx context.Context, team decision.Team, after int64, top int) (NoticeCount, error)
	// OpenDeadLetters are all of a team that are open. Its cost grows with how many causes there are, and where instants
	// are asked for a little with how many are open.
	OpenDeadLetters(ctx context.Context, team decision.Team, top int, older ...time.Time) (NoticeCount, error)
	// MoveWatermark keeps to in place of from, of the same team, channel and kind, and puts m in the outbox (nil: nothing),
	// both or neither. It does nothing, and returns false, where the watermark is not from any more, or m is given and a
	// message with its queue and key waits still: news gather, they do not pile up.
	MoveWatermark(ctx context.Context, from, to Watermark, m *journal.Message) (bool, error)
}
