// Package notify tells teams of the dead letters that wait for them, and of outages, by e-mail and by webhook:
// gathered, so that an outage does not send a thousand messages, and without anything of a single case (RN-BIL-005
// §9.2, §9.3, §7.2, R21).
//
// A Gatherer looks what is new for each address and webhook of a team, and puts a message into the outbox together with
// the watermark of how far that one has been told. A Sink sends what is in the outbox. Nothing is written for a single
// dead letter, and while a receiver does not answer one message waits for it: what is newer gathers behind it.
package notify

import (
	"encoding/json"
	"strings"
	"time"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
	"retry-worker/internal/statistics"
)

// Channel is a way that a team is told by. The set is closed.
type Channel string

// The channels.
const (
	Email   Channel = "email"
	Webhook Channel = "webhook"
)

// ChannelsOf returns the channels by which a team is told.
func ChannelsOf(t *catalogue.Team) []Channel {
	var all []Channel
	if len(t.Email) > 0 {
		all = append(all, Email)
	}
	if t.Webhook != nil {
		all = append(all, Webhook)
	}
	return all
}

// way is how one receiver of a team is told: "webhook", or "email:" and an address. Each has its own watermarks and
// messages, so that none holds up another.
type way string

// waysOf returns a team's, in the order in which they are served.
func waysOf(t *catalogue.Team) (all []way) {
	for _, address := range t.Email {
		all = append(all, way(string(Email)+":"+address))
	}
	if t.Webhook != nil {
		all = append(all, way(Webhook))
	}
	return all
}

// split returns the channel and the address; of a webhook there is none.
func (w way) split() (c Channel, address string) {
	channel, address, _ := strings.Cut(string(w), ":")
	return Channel(channel), address
}

// keyOf returns the key of a receiver's messages in the outbox.
func keyOf(team decision.Team, w way) string { return string(team) + "/" + string(w) }

// parseKey returns a key's team and way; names of teams have no slash.
func parseKey(key string) (decision.Team, way) {
	team, w, _ := strings.Cut(key, "/")
	return decision.Team(team), way(w)
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
	// Timestamp is when it was made, RFC 3339 in UTC.
	Timestamp string `json:"timestamp"`
	Data      Data   `json:"data"`
}

// Data of a notice.
type Data struct {
	Team string `json:"team"`
	// Day of the digest, such as 2026-11-21 where the teams live.
	Day string `json:"day,omitempty"`
	// New are the dead letters that came since the last notice and are open; in TypeNew only.
	New *Summary `json:"new,omitempty"`
	// Open are all that are open; its Top is empty in TypeNew.
	Open Summary `json:"open"`
	// Ages of those that are open, in TypeDigest only.
	Ages *Ages `json:"ages,omitempty"`
	// Expiring are how many of them end as expired within 30 days unless somebody decides, in TypeDigest only.
	Expiring int64 `json:"expiring,omitempty"`
	// Due are those of them that are due within a day, in TypeDigest only; nil where none is.
	Due *Due `json:"due,omitempty"`
	// FollowUps are how many are to be looked at again by the end of the day, in TypeDigest only: by the names of
	// who has them, without what begins with @; empty for nobody.
	FollowUps map[string]int64 `json:"followUps,omitempty"`
	// Taught are causes that the team is responsible for and that were taught more than 90 days ago, in TypeDigest
	// only: it is asked whether that still holds (R26).
	Taught []Taught `json:"taught,omitempty"`
	// Advised are causes of the team whose retries hardly help, in TypeDigest only.
	Advised []Advised `json:"advised,omitempty"`
	// NewCauses are new, or back, the first told of first, in TypeCauses only.
	NewCauses []NewCause `json:"newCauses,omitempty"`
	// Outage in TypeDown and TypeUp only.
	Outage *Outage `json:"outage,omitempty"`
	// KPIs of the team's policies (R19), in TypeDigest only; those over a week on Mondays only.
	KPIs []statistics.KPI `json:"kpis,omitempty"`
	// URL of the console's list; empty where nobody said where the console is.
	URL string `json:"url,omitempty"`
}

// Summary of dead letters.
type Summary struct {
	Count int64 `json:"count"`
	// Amount is what they are worth, such as 1234.56; empty where nothing is known of that.
	Amount string `json:"amount,omitempty"`
	// Causes is how many different ones there are.
	Causes int64 `json:"causes"`
	// Oldest is when the first was born, RFC 3339 in UTC; null where there is none.
	Oldest *string `json:"oldest"`
	// Top are the causes with the most; OtherCount is how many dead letters have another.
	Top        []Cause `json:"top,omitempty"`
	OtherCount int64   `json:"otherCount"`
}

// Cause is one of a summary's.
type Cause struct {
	Policy string `json:"policy"`
	// Reason of the dead letters; Rule is the code or rule that matched, otherwise why none did.
	Reason         string `json:"reason"`
	Rule           string `json:"rule,omitempty"`
	Classification string `json:"classification,omitempty"`
	// Pattern is the redacted error without what differs from case to case; only where several cases share it.
	Pattern string `json:"pattern,omitempty"`
	// Hint tells what to correct, as the catalogue says.
	Hint   string `json:"hint,omitempty"`
	Count  int64  `json:"count"`
	Amount string `json:"amount,omitempty"` // what they are worth
	Oldest string `json:"oldest"`
}

// Ages counts dead letters by how long they are open.
type Ages struct {
	// Day are those of the last 24 hours, Week of the six days before, Older all others.
	Day   int64 `json:"day"`
	Week  int64 `json:"week"`
	Older int64 `json:"older"`
}

// Due counts dead letters whose deadline is near.
type Due struct {
	Count  int64  `json:"count"`
	Amount string `json:"amount,omitempty"` // what they are worth
	// Until when they are due, RFC 3339 in UTC.
	Until string `json:"until"`
}

// read returns the notice of a message's body; false where that is none.
func read(body string) (*Notice, bool) {
	n := &Notice{}
	err := json.Unmarshal([]byte(body), n)
	return n, err == nil
}

// body returns the notice as JSON.
func (n *Notice) body() string {
	text, err := json.Marshal(n)
	if err != nil { // cannot be: plain structs
		return "{}"
	}
	return string(text)
}

// at returns the notice's instant; the zero time where there is none.
func (n *Notice) at() time.Time {
	t, _ := time.Parse(time.RFC3339, n.Timestamp)
	return t
}
