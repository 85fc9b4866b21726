package app

import (
	"context"
	"time"

	"retry-worker/internal/console"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/notify"
	"retry-worker/internal/outbox"
	"retry-worker/internal/web"
)

const (
	// gatherLease keeps replicas from gathering the same news.
	gatherLease = "notify"
	// noticeHold is the least time between tries for a receiver that does not take its messages.
	noticeHold = 15 * time.Minute
)

// addNotices adds the notices to teams about their dead letters, and logs which teams cannot be notified.
func (a *App) addNotices(c *relays, memory *journal.Journal, gates *gate.Gates) {
	s := a.settings.Notify
	c.notices = &notify.Sink{
		Catalogue: a.catalogue, Senders: Senders(s, a.version), Clock: a.clock, Tried: a.metrics.NoticeTried, Log: a.log,
	}
	relay := outbox.New(deadletter.NoticeQueue, a.holder, a.store, memory.Published, c.notices, a.log)
	relay.Patience = outbox.Patience{Message: notify.PublishTime, Hold: noticeHold, Apart: true}
	gatherer := notify.NewGatherer(notify.Options{
		Store: a.store, Catalogue: a.catalogue, Clock: a.clock, Settings: s, Retention: a.settings.Retention,
		Destinations: gates.Destinations, Learner: memory.Learner, Made: relay.Wake, Log: a.log,
	})
	c.wakes = append(c.wakes, gatherer.Wake)
	c.runs = append(c.runs,
		relay.Run,
		func(ends, hard context.Context) {
			outbox.Lead(ends, hard, a.store, gatherLease, a.holder, gatherer.Run)
		})
}

// Senders returns the senders of notices that the settings configure.
func Senders(s notify.Settings, version string) notify.Senders {
	senders := notify.Senders{Poster: notify.NewPoster(web.NewClient(s.Webhooks, version))}
	if s.SMTP != nil {
		senders.Mailer = notify.NewMailer(*s.SMTP, console.Portuguese, s.Zone)
	}
	return senders
}
