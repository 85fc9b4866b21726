// Package notify tells teams by e-mail and webhook of the dead letters that wait for them and of outages: gathered,
// so that an outage does not send a thousand messages, and without anything about a single case (RN-BIL-005 §9.2,
// §9.3, §7.2, R21).
//
// A Gatherer looks for what is new to each address and webhook of a team. It puts a message into the outbox together
// with the watermark of how far that receiver has been told. A Sink sends what is in the outbox. While a receiver
// does not answer, one message waits for it, and newer news gathers behind that.
package notify

import (
	"maps"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/statistics"
)

// Channel is a means of telling a team. The set is closed.
type Channel string

// The channels.
const (
	Email   Channel = "email"
	Webhook Channel = "webhook"
)

// Receiver is one address, or the webhook, by which a team is told. Each has its own watermarks and messages, so that
// none holds up another.
type Receiver struct {
	Team    decision.Team
	Channel Channel
	Address string // of e-mail
}

// Receivers returns whom the catalogue names, in the order in which they are served.
func Receivers(c *catalogue.Catalogue) (all []Receiver) {
	for _, name := range slices.Sorted(maps.Keys(c.Teams)) {
		for _, address := range c.Teams[name].Email {
			all = append(all, Receiver{name, Email, address})
		}
		if c.Teams[name].Webhook != nil {
			all = append(all, Receiver{Team: name, Channel: Webhook})
		}
	}
	return all
}

// way names the receiver among its team's: "webhook", or "email:" and the address.
func (r Receiver) way() string { return strings.TrimSuffix(string(r.Channel)+":"+r.Address, ":") }

// key returns the key of the receiver's messages in the outbox; names of teams have no slash.
func (r Receiver) key() string { return string(r.Team) + "/" + r.way() }

// receiverOf returns the receiver with that key.
func receiverOf(key string) Receiver {
	team, way, _ := strings.Cut(key, "/")
	channel, address, _ := strings.Cut(way, ":")
	return Receiver{decision.Team(team), Channel(channel), address}
}

// Types of notices, as receivers of webhooks read them. The set is closed.
const (
	TypeNew    = "dead_letters.new"
	TypeDigest = "digest.daily"
	TypeCauses = "causes.new"
	TypeDown   = "destination.down"
	TypeUp     = "destination.up"
)

// Notice is what a team is told: the body of a message in deadletter.NoticeQueue and of a webhook, in the form that
// Standard Webhooks recommend. It holds counts, causes and ages, and nothing of a single case.
type Notice struct {
	Type string `json:"type"`
	// Timestamp is when the notice was made. It is in UTC and to the second, as all times here.
	Timestamp time.Time `json:"timestamp"`
	Data      Data      `json:"data"`
}

// Data of a notice.
type Data struct {
	Team string `json:"team"`
	// Day is the digest's in the teams' time zone, such as 2026-11-21.
	Day string `json:"day,omitempty"`
	// New sums up the open dead letters that came since the last notice; in TypeNew only.
	New *Summary `json:"new,omitempty"`
	// Open sums up all that are open; its Top is empty in TypeNew.
	Open Summary `json:"open"`
	// Ages counts the open ones by age, in TypeDigest only.
	Ages *Ages `json:"ages,omitempty"`
	// Expiring is how many of the open ones expire within 30 days unless somebody decides, in TypeDigest only.
	Expiring int64 `json:"expiring,omitempty"`
	// Due sums up the open ones that are due within a day, in TypeDigest only; nil if there are none.
	Due *Due `json:"due,omitempty"`
	// FollowUps counts those to be looked at again by the end of the day, in TypeDigest only, by assignee: the name
	// before any @, empty for nobody.
	FollowUps map[string]int64 `json:"followUps,omitempty"`
	// Taught are causes that the team is responsible for and that somebody taught more than 90 days ago, in TypeDigest
	// only. The digest asks whether that still holds (R26).
	Taught []Taught `json:"taught,omitempty"`
	// Advised are causes of the team whose retries hardly help, in TypeDigest only.
	Advised []Advised `json:"advised,omitempty"`
	// NewCauses are new, or back, the earliest first, in TypeCauses only.
	NewCauses []NewCause `json:"newCauses,omitempty"`
	// Outage is set in TypeDown and TypeUp only.
	Outage *Outage `json:"outage,omitempty"`
	// KPIs are those of the team's policies (R19), in TypeDigest only; those over a week on Mondays only.
	KPIs []statistics.KPI `json:"kpis,omitempty"`
	// URL is a page of the console; empty if nobody said where the console is.
	URL string `json:"url,omitempty"`
}

// Summary of dead letters.
type Summary struct {
	Count int64 `json:"count"`
	// Amount is their total, such as 1234.56; empty if it is not known.
	Amount string `json:"amount,omitempty"`
	// Causes is how many different ones there are.
	Causes int64 `json:"causes"`
	// Oldest is when the first was created; null if there is none.
	Oldest *time.Time `json:"oldest"`
	// Top are the causes with the most; OtherCount is how many dead letters have another.
	Top        []Cause `json:"top,omitempty"`
	OtherCount int64   `json:"otherCount"`
}

// Cause counts the dead letters of a summary that share a cause.
type Cause struct {
	Policy string `json:"policy"`
	// Reason is the dead letters'. Rule is the code or rule that matched, or else why none did.
	Reason         string `json:"reason"`
	Rule           string `json:"rule,omitempty"`
	Classification string `json:"classification,omitempty"`
	// Pattern is the redacted error without what differs from case to case; set only if several cases share it.
	Pattern string `json:"pattern,omitempty"`
	// Hint says what to correct, as the catalogue has it.
	Hint   string    `json:"hint,omitempty"`
	Count  int64     `json:"count"`
	Amount string    `json:"amount,omitempty"` // what they are worth
	Oldest time.Time `json:"oldest"`
}

// Ages counts dead letters by how long they have been open.
type Ages struct {
	// Day counts those of the last 24 hours, Week those of the six days before, Older all others.
	Day   int64 `json:"day"`
	Week  int64 `json:"week"`
	Older int64 `json:"older"`
}

// Due counts dead letters whose deadline is near.
type Due struct {
	Count  int64  `json:"count"`
	Amount string `json:"amount,omitempty"` // what they are worth
	// Until is when they are due at the latest.
	Until time.Time `json:"until"`
}

// Outage is a time in which a destination does not answer.
type Outage struct {
	Destination string `json:"destination"`
	// Label is what people call it, if the catalogue says so.
	Label string `json:"label,omitempty"`
	// Cause is why it counts as down: failures (Failed of Admitted claims), probe or person.
	Cause    string `json:"cause"`
	Failed   int64  `json:"failed,omitempty"`
	Admitted int64  `json:"admitted,omitempty"`
	// Since is when it went down, Until when it was up again.
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero"`
	// Held is how many claims wait for it or, once it is up, waited.
	Held int64 `json:"held"`
	// Deadline is the nearest of the waiting claims, NextTest when the next of them is sent ahead.
	Deadline time.Time `json:"deadline,omitzero"`
	NextTest time.Time `json:"nextTest,omitzero"`
}

// KnownCause names a cause without its dead letters.
type KnownCause struct {
	ID     string `json:"cause"`
	Policy string `json:"policy"`
	Reason string `json:"reason"`
	// Pattern is as Cause's.
	Pattern string `json:"pattern,omitempty"`
	// URL is its page; empty if nobody said where the console is.
	URL string `json:"url,omitempty"`
}

// Taught is a cause that a person taught long ago.
type Taught struct {
	KnownCause
	Classification string    `json:"classification"` // as it was taught
	At             time.Time `json:"at"`
}

// Advised is a cause of whose Closed retried claims so few Recovered that people had better teach it as permanent.
type Advised struct {
	KnownCause
	Recovered int64 `json:"recovered"`
	Closed    int64 `json:"closed"`
}

// NewCause is a cause that was never seen before, or not for 30 days, and failed five times within an hour (R34).
type NewCause struct {
	KnownCause
	journal.News
	// Label is what people call the destination.
	Label string `json:"label,omitempty"`
}
