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
// Standard Webhooks recommend. It holds counts, causes and ages, and nothing of a single case. docs/policies.md says what
// each key is. Times are in UTC and to the second.
type Notice struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      Data      `json:"data"`
}

// Data of a notice.
type Data struct {
	Team      string           `json:"team"`
	Day       string           `json:"day,omitempty"`
	New       *Summary         `json:"new,omitempty"`
	Open      Summary          `json:"open"`
	Ages      *Ages            `json:"ages,omitempty"`
	Expiring  int64            `json:"expiring,omitempty"`
	Due       *Due             `json:"due,omitempty"`
	FollowUps map[string]int64 `json:"followUps,omitempty"` // by the name of an assignee before any @
	Taught    []Taught         `json:"taught,omitempty"`    // whether that still holds is asked (R26)
	Advised   []Advised        `json:"advised,omitempty"`
	NewCauses []NewCause       `json:"newCauses,omitempty"` // the earliest first
	Outage    *Outage          `json:"outage,omitempty"`
	KPIs      []statistics.KPI `json:"kpis,omitempty"` // those over a week on Mondays only (R19)
	URL       string           `json:"url,omitempty"`  // of a page of the console
}

// Summary of dead letters.
type Summary struct {
	Count      int64      `json:"count"`
	Amount     string     `json:"amount,omitempty"` // such as 1234.56
	Causes     int64      `json:"causes"`
	Oldest     *time.Time `json:"oldest"`
	Top        []Cause    `json:"top,omitempty"`
	OtherCount int64      `json:"otherCount"`
}

// Cause counts the dead letters of a summary that share a cause.
type Cause struct {
	Policy         string    `json:"policy"`
	Reason         string    `json:"reason"`
	Rule           string    `json:"rule,omitempty"`
	Classification string    `json:"classification,omitempty"`
	Pattern        string    `json:"pattern,omitempty"`
	Hint           string    `json:"hint,omitempty"`
	Count          int64     `json:"count"`
	Amount         string    `json:"amount,omitempty"`
	Oldest         time.Time `json:"oldest"`
}

// Ages counts dead letters by how long they have been open: up to 24 hours, up to six days more, and longer.
type Ages struct {
	Day   int64 `json:"day"`
	Week  int64 `json:"week"`
	Older int64 `json:"older"`
}

// Due counts dead letters whose deadline is near.
type Due struct {
	Count  int64     `json:"count"`
	Amount string    `json:"amount,omitempty"`
	Until  time.Time `json:"until"`
}

// Outage is a time in which a destination does not answer.
type Outage struct {
	Destination string    `json:"destination"`
	Label       string    `json:"label,omitempty"`
	Cause       string    `json:"cause"`
	Failed      int64     `json:"failed,omitempty"`
	Admitted    int64     `json:"admitted,omitempty"`
	Since       time.Time `json:"since"`
	Until       time.Time `json:"until,omitzero"`
	Held        int64     `json:"held"` // once it is up, how many were
	Deadline    time.Time `json:"deadline,omitzero"`
	NextTest    time.Time `json:"nextTest,omitzero"`
}

// KnownCause names a cause without its dead letters.
type KnownCause struct {
	ID      string `json:"cause"`
	Policy  string `json:"policy"`
	Reason  string `json:"reason"`
	Pattern string `json:"pattern,omitempty"`
	URL     string `json:"url,omitempty"`
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
	Label string `json:"label,omitempty"` // of its destination
}
