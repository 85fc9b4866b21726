// Package notify tells teams by e-mail and webhook of the dead letters that wait for them and of outages: gathered,
// so that an outage does not send a thousand messages, and without anything about a single case (RN-BIL-005 §9.2,
// §9.3, §7.2, R21).
//
// A Gatherer looks for what is new to each address and webhook of a team. It puts a message into the outbox together
// with the watermark of how far that receiver has been told. A Sink sends what is in the outbox. While a receiver
// does not answer, one message waits for it, and newer news gathers behind that.
package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/clock"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/statistics"
	"retry-worker/internal/web"
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
// Standard Webhooks recommend. It holds counts, causes and ages, and nothing of a single case. docs/policies.md says
// what each key is. Times are in UTC and to the second.
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

const (
	// lookEvery is how often a Gatherer looks if nobody wakes it: other replicas have dead letters too.
	lookEvery = 5 * time.Second
	leastRest = time.Second // its pause even if it is woken
	// gatherTime is how long the first of the news waits for more, as a cause seldom concerns one claim alone.
	gatherTime  = 10 * time.Second
	lookTime    = time.Minute // of one look
	mostWaiting = 1000        // messages that are read
)

// Store is what a Gatherer reads and writes.
type Store interface {
	journal.Reader
	journal.Outbox
	deadletter.Reader
	deadletter.NoticeStore
}

// Settings say how teams are told (R21). The tags are config's.
type Settings struct {
	PublicURL string         `group:"Messages to teams" env:"RETRY_WORKER_PUBLIC_URL" page:"the console" desc:"where people open the console, for links in messages: https://…; empty: no links"`
	Interval  time.Duration  `env:"RETRY_WORKER_NOTIFY_INTERVAL" default:"15m" from:"1s" to:"24h" desc:"least time between two messages to a team about new dead letters, 1s to 24h"`
	Zone      *time.Location `env:"RETRY_WORKER_TIME_ZONE" default:"America/Sao_Paulo" desc:"time zone of the digest, and of times in messages and in the console"`
	// DigestHour and DigestMinute are when the digest is due, in Zone.
	DigestHour, DigestMinute int
	// SMTP is the mail server; nil if no e-mail is sent.
	SMTP *MailServer
	// Webhooks are addresses that webhooks may be posted to besides public ones.
	Webhooks web.Allowed
}

// Options of a Gatherer.
type Options struct {
	Store     Store
	Catalogue func() *catalogue.Catalogue
	Clock     clock.Clock
	Settings
	Retention time.Duration // of records; 0 is for ever
	// Destinations returns the state of the destinations (gate.Gates.Destinations).
	Destinations func() ([]gate.Destination, error)
	// Learner says what came of a cause's retries; nil: no digest gives advice.
	Learner journal.Learner
	// Made is called after messages were put into the outbox. It must not block.
	Made func()
	Log  *zap.Logger
}

// Gatherer puts notices of what the journal holds into the outbox. One should run at a time (outbox.Lead); several
// would tell nothing twice.
type Gatherer struct {
	Options
	woken  clock.Signal
	failed bool // the last look
}

// NewGatherer returns a Gatherer; Run starts it.
func NewGatherer(o Options) *Gatherer {
	return &Gatherer{Options: o, woken: clock.NewSignal()}
}

// Wake has the Gatherer look soon. It never blocks and is safe for concurrent use.
func (g *Gatherer) Wake() { g.woken.Send() }

// Run makes notices until stop ends; hard ends its calls of the store.
func (g *Gatherer) Run(stop, hard context.Context) {
	for stop.Err() == nil {
		g.look(hard)
		g.Clock.Rest(stop, leastRest) // even if it is woken
		clock.RestOr(stop, g.Clock, lookEvery-leastRest, g.woken)
	}
}

// look makes the notices that are due.
func (g *Gatherer) look(ctx context.Context) {
	all := slices.DeleteFunc(Receivers(g.Catalogue()), func(r Receiver) bool {
		return r.Channel == Email && g.SMTP == nil // that was reported at the start
	})
	if len(all) == 0 {
		return
	}
	within, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	l := g.begin(within)
	for _, r := range all {
		l.receiver(r)
	}
	if l.err != nil && !g.failed && ctx.Err() == nil { // the journal logs when it answers again
		g.Log.Warn("the journal cannot be read for what teams are to be told; they are told when it can", zap.Error(l.err))
	}
	if g.failed = l.err != nil; l.made {
		g.Made()
	}
}

// look is one look at the journal.
type look struct {
	*Gatherer
	ctx context.Context
	now time.Time
	// err is why the store could not be read; then nothing more is read or made.
	err        error
	watermarks map[deadletter.Watermark]deadletter.Watermark // by team, channel and kind
	waiting    map[string]bool                               // keys of messages in the outbox
	made       bool

	destinations []gate.Destination
	fresh        []journal.Cause // reported lately, the earliest first
}

// read returns what the store returns, unless it has failed before.
func read[T any](l *look, of func() (T, error)) (value T) {
	if l.err == nil {
		value, l.err = of()
	}
	return value
}

func (l *look) counts(f journal.DeadLetterFilter) []deadletter.Count {
	return read(l, func() ([]deadletter.Count, error) { return l.Store.DeadLetterCounts(l.ctx, f) })
}

func (l *look) causes(f journal.CauseFilter, most int) []journal.Cause {
	return read(l, func() ([]journal.Cause, error) { return l.Store.Causes(l.ctx, f, nil, most) })
}

// move moves a watermark and puts m, unless it is nil, into the outbox. It reports false if another replica was faster,
// or if a message waits.
func (l *look) move(from, to deadletter.Watermark, m *journal.Message) bool {
	return read(l, func() (bool, error) { return l.Store.MoveWatermark(l.ctx, from, to, m) })
}

func (g *Gatherer) begin(ctx context.Context) *look {
	l := &look{Gatherer: g, ctx: ctx, now: g.Clock.Now(),
		watermarks: map[deadletter.Watermark]deadletter.Watermark{}, waiting: map[string]bool{}}
	for _, m := range read(l, func() ([]deadletter.Watermark, error) { return g.Store.Watermarks(ctx) }) {
		l.watermarks[deadletter.Watermark{Team: m.Team, Channel: m.Channel, Kind: m.Kind}] = m
	}
	l.fresh = l.causes(journal.CauseFilter{Told: l.now.Add(-toldWithin)}, mostCauses)
	slices.SortFunc(l.fresh, func(a, b journal.Cause) int { return a.News.At.Compare(b.News.At) })
	for _, m := range read(l, func() ([]journal.Message, error) {
		return g.Store.Pending(ctx, deadletter.NoticeQueue, 0, mostWaiting)
	}) {
		l.waiting[m.Key] = true
	}
	l.destinations, _ = l.Destinations() // none before the journal is read
	return l
}

// receiver makes at most one notice that is due for a receiver, and none while a message waits for it.
func (l *look) receiver(r Receiver) {
	if !l.waiting[r.key()] {
		_ = l.outage(r) || l.newCauses(r) || l.review(r) || l.news(r)
	}
}

func (l *look) watermark(r Receiver, kind deadletter.NoticeKind) deadletter.Watermark {
	never := deadletter.Watermark{Team: r.Team, Channel: r.way(), Kind: kind}
	if m, kept := l.watermarks[never]; kept {
		return m
	}
	return never
}

// lately reports whether at is less than Interval from now, on either side: replicas' clocks differ a little, and a
// clock that was put back must not silence a team until it is at that time again.
func (l *look) lately(at time.Time) bool { return l.now.Sub(at).Abs() < l.Interval }

// news makes a notice of new dead letters, once they have waited for others and the last notice is old enough. It
// reports whether it found any.
func (l *look) news(r Receiver) bool {
	from := l.watermark(r, deadletter.NewsNotice)
	if l.lately(from.At) {
		return false
	}
	news, all := l.summary(journal.DeadLetterFilter{Team: r.Team, After: from.Record})
	if age := l.now.Sub(all.Oldest); all.N == 0 || age.Abs() < gatherTime {
		return false
	}
	to := from
	to.Record, to.At = all.Last, l.now
	l.tell(r, from, to, TypeNew, func(d *Data) { d.New = &news })
	return true
}

// tell puts a notice into the outbox and moves the watermark. The notice has the team's open dead letters, a digest
// their causes too; about adds the rest.
func (l *look) tell(r Receiver, from, to deadletter.Watermark, kind string, about func(*Data)) {
	open, _ := l.summary(journal.DeadLetterFilter{Team: r.Team})
	if kind != TypeDigest {
		open.Top, open.OtherCount = nil, open.Count
	}
	n := &Notice{Type: kind, Timestamp: second(l.now), Data: Data{Team: string(r.Team), Open: open,
		URL: l.page("/dead-letters?" + url.Values{"team": {string(r.Team)}}.Encode())}}
	about(&n.Data)
	body, _ := json.Marshal(n) // cannot fail for plain structs
	m := &journal.Message{ID: idOf(&to, from.Record), Queue: deadletter.NoticeQueue, Key: r.key(), Type: n.Type,
		Body: string(body), At: l.now}
	if !l.move(from, to, m) {
		return
	}
	l.made = true
	l.Log.Info("a team is to be told", zap.String("event", "notice_made"), zap.String("team", string(r.Team)),
		zap.String("channel", string(r.Channel)), zap.String("type", n.Type), zap.String("message", m.ID),
		zap.Int64("deadLetters", cmp.Or(n.Data.New, &open).Count), zap.Int64("open", open.Count))
}

// review makes the digest of a team if it is due, and reports whether it is.
func (l *look) review(r Receiver) bool {
	from := l.watermark(r, deadletter.DigestNotice)
	to := from
	to.At, to.Day = l.now, l.digestDay(l.now)
	isAhead := from.Day > l.digestDay(l.now.AddDate(0, 0, 1)) // of a clock that has been put back by days
	switch {
	case !l.Catalogue().Teams[r.Team].Digest || to.Day <= from.Day && !isAhead:
		return false
	case from.At.IsZero(): // the team gets its first at the next time
		l.move(from, to, nil)
		return false
	}
	l.tell(r, from, to, TypeDigest, func(d *Data) { l.digest(d, r.Team, to.Day) })
	return true
}

// digestDay returns the last day whose digest is due. If the clocks skip the time of day, the digest is due right
// after; if they show it twice, the digest is due once.
func (s *Settings) digestDay(now time.Time) string {
	y, m, date := now.In(s.Zone).Date()
	if time.Date(y, m, date, s.DigestHour, s.DigestMinute, 0, 0, s.Zone).After(now) {
		date--
	}
	return time.Date(y, m, date, 12, 0, 0, 0, time.UTC).Format(time.DateOnly)
}
