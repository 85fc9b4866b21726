package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/events"
	"retry-worker/internal/journal"
	"retry-worker/internal/notify"
	"retry-worker/internal/outbox"
)

// carryAll has relays carry decisions to processes, events to whoever listens, and notices to teams.
func (r *replica) carryAll(p *part, log *zap.Logger) {
	relay := func(queue string, sink outbox.Sink, letGo func(context.Context, []int64) error) *outbox.Relay {
		b := &box{store: r.store, queue: queue, sink: sink, letGo: letGo, stop: p}
		return outbox.New(queue, fmt.Sprint(r.name, time.Since(r.began)), b, b.release, b, log)
	}
	byDelivery := func(context.Context, []int64) error { return nil }
	notices := &notify.Sink{Catalogue: r.inForce, Senders: notify.Senders{Poster: notify.NewPoster(&http.Client{Transport: r})}, Clock: r,
		Add: func(string, float64, ...string) {}, Log: log}
	reviews, told := relay(journal.ReviewQueue, r.sink, byDelivery), relay(deadletter.NoticeQueue, notices, r.journal.Published)
	reviews.Leads = r.sink.Leads
	told.Patience = outbox.Patience{Message: notify.PublishTime, Hold: noticeEvery, Apart: true}
	for _, one := range []*outbox.Relay{reviews, relay(events.Queue, listener{r}, r.journal.Published), told} {
		r.do(p, func(stop context.Context) { one.Run(stop, r.life) })
	}
}

// box is the store and the sink of one relay. The product draws the pause between two sweeps, which a seed cannot give
// again: it is the longest here.
type box struct {
	*store
	stop   context.Context
	taken  sync.Map // messages, by their sequences
	queue  string
	sink   outbox.Sink
	letGo  func(ctx context.Context, sequences []int64) error
	worked time.Time // when the relay did something last
}

// relayRest is the longest pause between two sweeps of a relay, and odd: it ends at the instant of nothing else.
const relayRest = 5*time.Second + 411

func (b *box) rests() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.worked = time.Now()
}

func (b *box) Publish(ctx context.Context, m *journal.Message) error {
	defer b.rests()
	if b.queue == journal.ReviewQueue {
		b.port(fmt.Sprint(b.name, " answers ", m.Sequence))
	}
	b.leads("outbox/" + b.queue)
	if _, taken := b.taken.Load(m.Sequence); taken {
		b.fail("%s sends the message %d of %s, which was taken, again", b.name, m.Sequence, b.queue)
	}
	err := b.sink.Publish(ctx, m)
	if err == nil {
		b.taken.Store(m.Sequence, true)
	}
	return err
}

// wait until the relay has rested, unless it goes on at once. A stop ends that as it ends the pause that the product draws.
func (b *box) wait(ctx context.Context, goesOn bool) error {
	since := time.Since(get(&b.mu, &b.worked))
	if since == 0 && goesOn {
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.stop, cancel)()
	b.Rest(ctx, relayRest-since)
	return ctx.Err()
}

func (b *box) release(ctx context.Context, sequences []int64) error {
	if err := b.wait(ctx, true); err != nil && ctx.Err() != nil { // who is to stop lets go of what was taken
		return err
	}
	defer b.rests()
	within, cancel := context.WithTimeout(ctx, relayRest-time.Second) // the time of the call began with the drawn pause
	defer cancel()
	if b.port(b.name + " lets go of " + b.queue); within.Err() != nil {
		return within.Err()
	}
	for _, n := range sequences {
		if _, taken := b.taken.Load(n); !taken {
			b.fail("%s lets go of the message %d of %s, which was not taken", b.name, n, b.queue)
		}
	}
	return b.letGo(within, sequences)
}

// Pending implements journal.Outbox.
func (b *box) Pending(ctx context.Context, queue string, after int64, limit int) ([]journal.Message, error) {
	if err := b.wait(ctx, false); err != nil {
		return nil, err
	}
	defer b.rests()
	return b.store.Pending(ctx, queue, after, limit)
}

// Backlog implements journal.Outbox. Nobody looks at it.
func (*store) Backlog(context.Context) (map[string]int64, error) { return nil, nil }

// listener is whoever takes events.
type listener struct{ *replica }

func (l listener) Publish(ctx context.Context, m *journal.Message) error {
	l.port(fmt.Sprint(l.name, " event ", m.Sequence))
	if l.life.Err() != nil || time.Now().Before(l.deaf) || m.Key == l.refused && time.Now().Before(l.refusedUntil) || l.fault("event not taken") {
		return errors.New("nobody takes events")
	}
	if l.fault("event taken slowly") {
		if l.sometimes("asked to end with an event on its way "+l.name, 1, 4) {
			l.leave()
		}
		if l.Rest(ctx, 4*time.Second); ctx.Err() != nil {
			return ctx.Err()
		}
		if l.port(fmt.Sprint(l.name, " takes event ", m.Sequence)); l.leaving && l.sometimes("no event taken any more "+l.name, 1, 2) {
			return errors.New("nobody takes events any more")
		}
	}
	l.heard(m)
	if l.fault("event taken in silence") {
		<-ctx.Done()
	}
	return ctx.Err()
}

// heard: an event has one content, and those of a claim come in order.
func (s *sim) heard(m *journal.Message) {
	var e struct{ Policy, Subject string }
	_ = json.Unmarshal([]byte(m.Body), &e)
	of := e.Policy + "/" + e.Subject
	before, known := s.events[m.ID]
	s.events[m.ID] = m.Body
	last := s.order[of]
	s.order[of] = max(last, m.Sequence)
	if !known {
		s.expected[saidBy(m)]--
	}
	switch {
	case leaks(m.Body):
		s.fail("event %s has a secret: %s", m.ID, m.Body)
	case known && before != m.Body:
		s.fail("event %s is told with another content", m.ID)
	case !known && m.Sequence < last && e.Subject != "":
		s.fail("event %s of %s is told after a later one", m.ID, of)
	}
}

// said is what an event says: its kind, and the record, or else the claim or portal, that it is of.
type said struct {
	Kind, Of string
	Record   int64
}

// expect has an event be told.
func (s *sim) expect(kind, of string) { s.expected[said{Kind: kind, Of: outside(of)}]++ }

func saidBy(m *journal.Message) said {
	var e struct {
		Data struct {
			Record               int64
			ClaimID, Destination string
		}
	}
	_ = json.Unmarshal([]byte(m.Body), &e)
	if m.Type == events.AuditRecorded {
		return said{Kind: m.Type, Record: e.Data.Record}
	}
	return said{Kind: m.Type, Of: cmp.Or(e.Data.ClaimID, e.Data.Destination)}
}

// unsent: no message waits for long that can be sent.
func (s *sim) unsent(most time.Duration) {
	for _, m := range s.memory.Outbox() {
		if m.Key == s.refused && time.Since(s.refusedUntil) < most {
			continue
		}
		if m.Queue != deadletter.NoticeQueue && min(time.Since(m.At), time.Since(s.away), time.Since(s.deaf)) > most {
			s.fail("the message %s of %s waits since %s in the queue %s", m.ID, m.Key, m.At.Sub(s.began), m.Queue)
			return
		}
	}
}

const (
	// noticeEvery is the least time between two messages of news to a team, by one clock; clocksApart is how far those of
	// two replicas are at most.
	noticeEvery, clocksApart = 15 * time.Minute, 4 * time.Minute
	team                     = decision.Team("faturamento")
	// console is where people look at dead letters.
	console = "https://retry.example"
)

// employ has the team that most dead letters are for told of them by webhook.
func (s *sim) employ(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqrTwjU\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.teams = map[decision.Team]catalogue.Team{team: {Webhook: &catalogue.Webhook{URL: "https://faturamento.example/", SecretFile: file},
		Digest: true}}
}

// inForce is the catalogue.
func (s *sim) inForce() *catalogue.Catalogue {
	c := *catalogue.Default()
	c.Policies, c.Teams = get(&s.mu, &s.policies), s.teams
	return &c
}

// gather returns what makes notices.
func (r *replica) gather(log *zap.Logger) func(stop, hard context.Context) {
	return notify.NewGatherer(notify.Options{Store: r.store, Catalogue: r.inForce, Clock: r,
		Settings:     notify.Settings{Interval: noticeEvery, DigestHour: 2, Zone: time.UTC, PublicURL: console},
		Destinations: r.gates.Destinations, Made: func() {}, Log: log}).Run
}

// RoundTrip is the team's receiver of webhooks.
func (r *replica) RoundTrip(q *http.Request) (*http.Response, error) {
	r.port(r.name + " webhook")
	answer := func(status int) (*http.Response, error) {
		return &http.Response{StatusCode: status, Body: http.NoBody, Request: q}, nil
	}
	hangs := func() (*http.Response, error) {
		<-q.Context().Done()
		return nil, q.Context().Err()
	}
	body, err := io.ReadAll(q.Body)
	switch {
	case err != nil || r.life.Err() != nil:
		return nil, context.Canceled
	case r.fault("receiver fails"):
		return answer(http.StatusBadGateway)
	case r.fault("receiver refuses"):
		return answer(http.StatusGone)
	case r.fault("receiver hangs"):
		return hangs()
	}
	r.noticed(q.Header.Get("Webhook-Id"), string(body))
	if r.fault("receiver hangs when done") {
		return hangs()
	}
	return answer(http.StatusNoContent)
}

// noticed: a notice has one content, and nothing of a single case.
func (s *sim) noticed(id, body string) {
	if before, known := s.notices[id]; known && before != body {
		s.fail("notice %s is told with another content", id)
	}
	s.notices[id] = body
	if strings.Contains(body, "CLM-") || leaks(body) || strings.Contains(body, "jobKey") {
		s.fail("notice %s is of a single case: %s", id, body)
	}
}

// Watermarks implements deadletter.NoticeStore.
func (v *store) Watermarks(ctx context.Context) ([]deadletter.Watermark, error) {
	if err := v.read("watermarks"); err != nil {
		return nil, err
	}
	return v.Memory.Watermarks(ctx)
}

// MoveWatermark implements deadletter.NoticeStore.
func (v *store) MoveWatermark(ctx context.Context, from, to deadletter.Watermark, m *journal.Message) (bool, error) {
	if v.port(v.name + " watermark"); v.refuses() || v.fault("write fails") {
		return false, errStore
	}
	moved, err := v.Memory.MoveWatermark(ctx, from, to, m)
	if moved && m != nil {
		v.say("%s is to be told: %s", m.Key, m.Type)
	}
	return moved, err
}

// atOnce is how long what is to be done at once may take: a full disk has room within five minutes.
const atOnce = 10 * time.Minute

// untoldOutages: a team is told of an outage at once, or some time after the one that it was told of last began.
func (s *sim) untoldOutages() {
	marks, _ := s.memory.Watermarks(context.Background())
	if slices.ContainsFunc(s.memory.Outbox(), func(m journal.Message) bool { return m.Queue == deadletter.NoticeQueue }) {
		s.noticing = time.Now()
	}
	for _, name := range s.portalNames() {
		b := s.portals[name].recorded
		if b.State == nil {
			continue
		}
		began, mark := b.Outage.Since, markOf(marks, deadletter.OutageNotice+deadletter.NoticeKind(name))
		told := mark.At
		if b.Phase == destination.Up && mark.Record == 0 && !told.IsZero() && told.Equal(began.Truncate(time.Millisecond)) &&
			min(time.Since(b.Since), time.Since(s.noticing)) > atOnce+clocksApart {
			s.fail("%s was told that %s is down, and not that it is up since %s", team, name, b.Since.Sub(s.began))
		}
		if !s.down(name, 0) {
			s.portals[name].notDown = time.Now()
			continue
		}
		ago := min(time.Since(began), time.Since(s.portals[name].notDown), time.Since(told)-noticeEvery, time.Since(s.noticing))
		if !told.Equal(began.Truncate(time.Millisecond)) && ago > atOnce {
			s.fail("nobody tells %s that %s is down since %s", team, name, began.Sub(s.began))
		}
	}
}

// markOf is how far the team was told of that kind.
func markOf(marks []deadletter.Watermark, kind deadletter.NoticeKind) deadletter.Watermark {
	for _, m := range marks {
		if m.Team == team && m.Kind == kind {
			return m
		}
	}
	return deadletter.Watermark{}
}
