package sim

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/notify"
)

const (
	// noticeEvery is the least time between two messages of news to a team, by one clock; clocksApart is how far those of
	// two replicas are at most.
	noticeEvery, clocksApart = 15 * time.Minute, 4 * time.Minute
	team                     = decision.Team("faturamento")
	// digestHour is when the digest of the day is due.
	digestHour = 2
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
	return notify.NewGatherer(notify.Options{Store: r.store, Catalogue: r.inForce, Clock: r, Interval: noticeEvery, DigestHour: digestHour,
		Zone: time.UTC, PublicURL: console, Destinations: r.gates.Destinations, Made: func() {}, Log: log}).Run
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

// MoveWatermark implements deadletter.NoticeStore. A team is told of what is new at most once in noticeEvery.
func (v *store) MoveWatermark(ctx context.Context, from, to deadletter.Watermark, m *journal.Message) (bool, error) {
	if v.port(v.name + " watermark"); v.refuses() || v.fault("write fails") {
		return false, errStore
	}
	moved, err := v.Memory.MoveWatermark(ctx, from, to, m)
	if moved && m != nil {
		v.say("%s is to be told: %s", m.Key, m.Type)
		least := map[string]time.Duration{notify.TypeNew: noticeEvery - clocksApart, notify.TypeDigest: 20 * time.Hour}[m.Type]
		if last, known := v.noticedAt[m.Type]; known && time.Since(last) < least {
			v.fail("%s is told %s after the last time", m.Key, time.Since(last))
		}
		if m.Type == notify.TypeDown && !from.At.IsZero() && time.Since(from.At) < noticeEvery-clocksApart {
			v.fail("%s is told of an outage, and of the one that began %s before", m.Key, time.Since(from.At))
		}
		v.noticedAt[m.Type] = time.Now()
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
