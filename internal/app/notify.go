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
	// gatherLease keeps replicas from looking for the same news.
	gatherLease = "notify"
	// noticeHold is how seldom a receiver is tried at most that does not take what it is sent.
	noticeHold = 15 * time.Minute
)

// addNotices adds what tells teams of their dead letters, and says who cannot be told.
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

// Senders returns what the settings send notices by.
func Senders(s notify.Settings, version string) notify.Senders {
	senders := notify.Senders{Poster: notify.NewPoster(web.NewClient(s.Webhooks, version))}
	if s.SMTP != nil {
		senders.Mailer = notify.NewMailer(*s.SMTP, console.Portuguese, s.Zone)
	}
	return senders
}
