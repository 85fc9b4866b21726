package notify

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/clock"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/web"
)

const (
	// lookEvery is how often a Gatherer looks if nobody wakes it: other replicas have dead letters too.
	lookEvery = 5 * time.Second
	// leastRest is its pause even if it is woken.
	leastRest = time.Second
	// gatherTime is how long the first of the news waits for more, as a cause seldom concerns one claim alone.
	gatherTime = 10 * time.Second
	// lookTime bounds one look.
	lookTime = time.Minute
	// mostWaiting bounds the waiting messages that are read.
	mostWaiting = 1000
)

// Store is what a Gatherer reads and writes.
type Store interface {
	deadletter.NoticeStore
	// Pending is journal.Outbox's, Sums and Causes are journal.Statistics'.
	Pending(ctx context.Context, queue string, after int64, limit int) ([]journal.Message, error)
	Sums(ctx context.Context, from int64, names ...journal.SumName) ([]journal.Sum, error)
	Causes(ctx context.Context, f journal.CauseFilter, after *journal.Fingerprint, limit int) ([]journal.Cause, error)
	// DeadLetterCounts is deadletter.Reader's.
	DeadLetterCounts(ctx context.Context, f journal.DeadLetterFilter) ([]deadletter.Count, error)
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
	// Retention is how long records are kept; 0 is for ever.
	Retention time.Duration
	// Destinations returns the state of the destinations (gate.Gates.Destinations); nil: nobody is told of outages.
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
	woken clock.Signal
	// failed reports whether the last look failed.
	failed bool
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
	all := g.receivers()
	if len(all) == 0 {
		return
	}
	within, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	l, err := g.begin(within)
	for i := 0; i < len(all) && err == nil; i++ {
		err = l.receiver(within, &all[i])
	}
	g.unread(ctx, err)
	if l != nil && l.made {
		g.Made()
	}
}

// receiver is a team's way of being told.
type receiver struct {
	team decision.Team
	way  way
	// digest reports whether the team gets digests.
	digest bool
}

// receivers returns the receivers that can be told, in a fixed order.
func (g *Gatherer) receivers() (all []receiver) {
	teams := g.Catalogue().Teams
	for _, name := range slices.Sorted(maps.Keys(teams)) {
		t := teams[name]
		for _, w := range waysOf(&t) {
			if c, _ := w.split(); c != Email || g.SMTP != nil { // a missing mail server was reported at the start
				all = append(all, receiver{name, w, t.Digest})
			}
		}
	}
	return all
}

// unread logs once that the store does not answer, unless ctx ended. The journal logs when it answers again.
func (g *Gatherer) unread(ctx context.Context, err error) {
	if err != nil && !g.failed && ctx.Err() == nil {
		g.Log.Warn("the journal cannot be read for what teams are to be told; they are told when it can", zap.Error(err))
	}
	g.failed = err != nil
}

// glance is what one look reads.
type glance struct {
	*Gatherer
	now        time.Time
	watermarks map[deadletter.Watermark]deadletter.Watermark // by team, channel and kind
	waiting    map[string]bool                               // keys of messages in the outbox
	made       bool

	destinations []gate.Destination
	fresh        []journal.Cause // reported lately, the earliest first
}

func (g *Gatherer) begin(ctx context.Context) (*glance, error) {
	l := &glance{Gatherer: g, now: g.Clock.Now(),
		watermarks: map[deadletter.Watermark]deadletter.Watermark{}, waiting: map[string]bool{}}
	watermarks, err := g.Store.Watermarks(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range watermarks {
		l.watermarks[deadletter.Watermark{Team: m.Team, Channel: m.Channel, Kind: m.Kind}] = m
	}
	l.fresh, err = g.Store.Causes(ctx, journal.CauseFilter{Told: l.now.Add(-toldWithin)}, nil, mostCauses)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(l.fresh, func(a, b journal.Cause) int { return a.News.At.Compare(b.News.At) })
	waiting, err := g.Store.Pending(ctx, deadletter.NoticeQueue, 0, mostWaiting)
	for i := range waiting {
		l.waiting[waiting[i].Key] = true
	}
	if l.Destinations != nil {
		l.destinations, _ = l.Destinations() // none before the journal is read
	}
	return l, err
}

// receiver makes at most one notice that is due for a receiver, and none while a message waits for it.
func (l *glance) receiver(ctx context.Context, r *receiver) error {
	if l.waiting[keyOf(r.team, r.way)] {
		return nil
	}
	for _, tell := range []func(context.Context, *receiver) (bool, error){l.outage, l.causes, l.review, l.news} {
		if found, err := tell(ctx, r); found || err != nil {
			return err
		}
	}
	return nil
}

func (l *glance) watermark(r *receiver, kind deadletter.NoticeKind) deadletter.Watermark {
	never := deadletter.Watermark{Team: r.team, Channel: string(r.way), Kind: kind}
	if m, kept := l.watermarks[never]; kept {
		return m
	}
	return never
}

// lately reports whether at is less than Interval from now, on either side: replicas' clocks differ a little, and a
// clock that was put back must not silence a team until it is at that time again.
func (l *glance) lately(at time.Time) bool { return l.now.Sub(at).Abs() < l.Interval }

// news makes a notice of new dead letters, once they have waited for others and the last notice is old enough. It
// reports whether it found any.
func (l *glance) news(ctx context.Context, r *receiver) (bool, error) {
	from := l.watermark(r, deadletter.NewsNotice)
	if l.lately(from.At) {
		return false, nil
	}
	news, all, err := l.summary(ctx, journal.DeadLetterFilter{Team: r.team, After: from.Record})
	if age := l.now.Sub(all.Oldest); err != nil || all.N == 0 || age.Abs() < gatherTime {
		return false, err
	}
	to := from
	to.Record, to.At = all.Last, l.now
	return l.tell(ctx, from, to, TypeNew, func(d *Data) { d.New = &news })
}

// tell makes a notice with the number of the team's open dead letters, without their causes. about adds what the
// notice is about.
func (l *glance) tell(
	ctx context.Context, from, to deadletter.Watermark, kind string, about func(*Data),
) (found bool, err error) {
	open, all, err := l.summary(ctx, journal.DeadLetterFilter{Team: to.Team})
	if err != nil {
		return true, err
	}
	n := l.newNotice(kind, to.Team)
	n.Data.Open, n.Data.Open.Top, n.Data.Open.OtherCount = open, nil, all.N
	about(&n.Data)
	return true, l.make(ctx, from, to, n)
}

// make puts a notice into the outbox and moves the watermark.
func (l *glance) make(ctx context.Context, from, to deadletter.Watermark, n *Notice) error {
	team, w := to.Team, way(to.Channel)
	m := &journal.Message{ID: idOf(&to, from.Record), Queue: deadletter.NoticeQueue, Key: keyOf(team, w), Type: n.Type,
		Body: n.body(), At: l.now}
	moved, err := l.Store.MoveWatermark(ctx, from, to, m)
	if err != nil || !moved { // another replica was faster, or its message waits in the outbox
		return err
	}
	l.made = true
	told := n.Data.Open.Count
	if n.Data.New != nil {
		told = n.Data.New.Count
	}
	c, _ := w.split()
	l.Log.Info("a team is to be told", zap.String("event", "notice_made"), zap.String("team", string(team)),
		zap.String("channel", string(c)), zap.String("type", n.Type), zap.String("message", m.ID),
		zap.Int64("deadLetters", told), zap.Int64("open", n.Data.Open.Count))
	return nil
}

// review makes the digest of a team if it is due, and reports whether it is.
func (l *glance) review(ctx context.Context, r *receiver) (bool, error) {
	from := l.watermark(r, deadletter.DigestNotice)
	to, daily := from, schedule{l.DigestHour, l.DigestMinute, l.Zone}
	to.At, to.Day = l.now, daily.due(l.now)
	isAhead := from.Day > daily.due(l.now.AddDate(0, 0, 1)) // of a clock that has been put back by days
	if !r.digest || to.Day <= from.Day && !isAhead {
		return false, nil
	}
	if from.At.IsZero() { // the team gets its first at the next time
		_, err := l.Store.MoveWatermark(ctx, from, to, nil)
		return false, err
	}
	n, err := l.digest(ctx, r.team, to.Day)
	if err == nil {
		err = l.make(ctx, from, to, n)
	}
	return true, err
}

// schedule is the time of day at which the digest is due, where the teams live.
type schedule struct {
	hour, minute int
	zone         *time.Location
}

// due returns the last day whose digest is due. If the clocks skip the time of day, the digest is due right after; if
// they show it twice, the digest is due once.
func (s schedule) due(now time.Time) (day string) {
	y, m, date := now.In(s.zone).Date()
	if time.Date(y, m, date, s.hour, s.minute, 0, 0, s.zone).After(now) {
		date--
	}
	return time.Date(y, m, date, 12, 0, 0, 0, time.UTC).Format(time.DateOnly)
}
