package sim

import (
	"context"
	"encoding/json"
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
	// dueWithin is how near a deadline is that the team is told of.
	dueWithin = time.Hour
)

// employ has the team that most dead letters are for told of them by webhook.
func (s *sim) employ(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqrTwjU\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.teams = map[decision.Team]catalogue.Team{team: {Webhook: &catalogue.Webhook{URL: "https://faturamento.example/", SecretFile: file},
		Digests: []catalogue.Digest{catalogue.Daily}, Due: &catalogue.Due{Within: dueWithin, Claims: 0, Cents: -1}}}
}

// inForce is the catalogue.
func (s *sim) inForce() *catalogue.Catalogue {
	c := *catalogue.Default()
	c.Policies, c.Teams = get(&s.mu, &s.policies), s.teams
	return &c
}

// gather returns what makes notices.
func (r *replica) gather(log *zap.Logger) func(stop, hard context.Context) {
	c := offClock{r, 0}
	if r.clocksOff {
		c.by = time.Duration(r.draw("off by").IntN(8*60)-4*60) * time.Minute
	}
	return notify.NewGatherer(notify.Options{Store: r.store, Catalogue: r.inForce, Clock: c, Interval: noticeEvery, DigestHour: digestHour,
		Zone: time.UTC, PublicURL: console, Destinations: r.gates.Destinations, Made: func() {}, Log: log}).Run
}

// offClock is a replica's clock that is hours off until it starts again, as what makes notices reads it. What else reads a
// clock cannot keep what it promises then.
type offClock struct {
	*replica
	by time.Duration
}

func (c offClock) Now() time.Time { return c.replica.Now().Add(c.by) }

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
	if before, known := s.notices[id]; known && before != body && !s.clocksOff { // else told at the same second, by a clock of before
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
		least := map[string]time.Duration{notify.TypeNew: noticeEvery - clocksApart, notify.TypeDue: noticeEvery - clocksApart, notify.TypeDaily: 20 * time.Hour}[m.Type]
		if last, known := v.noticedAt[m.Type]; known && time.Since(last) < least && !v.clocksOff {
			v.fail("%s is told %s after the last time", m.Key, time.Since(last))
		}
		if m.Type == notify.TypeDown && !v.clocksOff && !from.At.IsZero() && time.Since(from.At) < noticeEvery-clocksApart {
			v.fail("%s is told of an outage, and of the one that began %s before", m.Key, time.Since(from.At))
		}
		v.noticedAt[m.Type] = time.Now()
		v.toldOf(m)
		v.counts(from, m)
	}
	return moved, err
}

// counts: a team is told how many dead letters are new and open, of which causes and what those are worth, where nothing
// changed just now.
func (s *sim) counts(from deadletter.Watermark, m *journal.Message) {
	var n notify.Notice
	if time.Since(s.seenAt) < time.Second || json.Unmarshal([]byte(m.Body), &n) != nil {
		return
	}
	open := slices.DeleteFunc(s.openLetters(), func(d deadletter.Item) bool { return d.Team != team })
	isNew := slices.DeleteFunc(slices.Clone(open), func(d deadletter.Item) bool { return d.Record <= from.Record })
	where := console + "/dead-letters?team=" + string(team)
	switch {
	case n.Data.Outage != nil:
		where = console + "/destinations"
	case n.Data.Due != nil:
		where += "&sort=deadline"
	}
	known := n.Data.Team == string(team) && n.Type == m.Type && n.Data.URL == where && (n.Type == notify.TypeNew) == (n.Data.New != nil)
	ages := n.Data.Ages
	at, err := time.Parse(time.RFC3339, n.Timestamp)
	if known = known && err == nil && (n.Data.Day == "" || n.Data.Day == at.Format(time.DateOnly)) && (ages == nil || ages.Day+ages.Week+ages.Older == n.Data.Open.Count); !s.clocksOff {
		known = known && time.Since(at).Abs() < clocksApart && (ages == nil || ages.Day == n.Data.Open.Count)
	}
	if !known || !sums(&n.Data.Open, open) || n.Data.New != nil && !sums(n.Data.New, isNew) {
		s.fail("%s is told %s, of %d that are open and %d new", m.Key, m.Body, len(open), len(isNew))
	}
	if due := n.Data.Due; due != nil && !s.clocksOff {
		margin := s.apart()
		if least, most := near(open, margin, margin), near(open, -margin, -margin); due.Count < least || due.Count > most {
			s.fail("%s is told of %d that are due, and %d to %d are", m.Key, due.Count, least, most)
		}
	}
}

// sums reports whether a summary is of those dead letters, the newest first.
func sums(told *notify.Summary, of []deadletter.Item) bool {
	causes, cents, all := map[[2]string]notify.Cause{}, map[[2]string]int64{}, int64(0)
	amount := func(cents int64) string {
		if cents == 0 {
			return ""
		}
		return decision.Amount(cents)
	}
	oldest := ""
	for i := range of {
		d := &of[i]
		key := [2]string{d.Fingerprint, string(d.Reason)}
		oldest, all, cents[key] = d.CreatedAt.Truncate(time.Second).Format(time.RFC3339), all+d.Cents, cents[key]+d.Cents
		causes[key] = notify.Cause{Policy: d.Subject.Policy, Reason: string(d.Reason), Count: causes[key].Count + 1, Amount: amount(cents[key]), Oldest: oldest}
	}
	right := told.Count == int64(len(of)) && told.Causes == int64(len(causes)) && told.Amount == amount(all) && (told.Oldest == nil) == (oldest == "") &&
		(oldest == "" || *told.Oldest == oldest)
	others := told.Count
	for _, c := range told.Top {
		others -= c.Count
		right = right && (c.Pattern == "" || c.Count > 1)
		c.Rule, c.Classification, c.Pattern, c.Hint = "", "", "", ""
		found := false
		for key, is := range causes {
			if found = is == c; found {
				delete(causes, key)
				break
			}
		}
		right = right && found
	}
	return right && told.OtherCount == others
}

// toldOf: a portal of which a team is told that it is up is, or was a moment ago, and what it is told of an outage is recorded.
func (s *sim) toldOf(m *journal.Message) {
	var n notify.Notice
	if json.Unmarshal([]byte(m.Body), &n) != nil || n.Data.Outage == nil {
		return
	}
	o, w := n.Data.Outage, s.portals[n.Data.Outage.Destination]
	now := w.recorded
	if m.Type == notify.TypeUp && now.State != nil && now.Phase != destination.Up && time.Since(w.wasUp) > noLongerDown {
		s.fail("%s is told that %s is up, which is %s", m.Key, o.Destination, now.Phase)
	}
	was := *o
	was.Deadline, was.NextTest = "", ""
	if m.Type == notify.TypeDown {
		was.Held = 0 // which each replica shows as it is
	}
	if !w.outages[was] {
		s.fail("%s is told %+v, of %v", m.Key, o, w.outages)
	}
}

// atOnce is how long what is to be done at once may take: a full disk has room within five minutes.
const atOnce = 10 * time.Minute

// mayWait is how long a team may not be told of what it is to be told at once: a clock that is off may come to when it was
// told of something before.
func (s *sim) mayWait() time.Duration {
	if s.clocksOff {
		return atOnce + 2*noticeEvery
	}
	return atOnce
}

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
		if !told.Equal(began.Truncate(time.Millisecond)) && ago > s.mayWait() {
			s.fail("nobody tells %s that %s is down since %s", team, name, began.Sub(s.began))
		}
	}
}

// near is how many of the team's dead letters have so long until their deadline, at least, and are due by a margin.
func near(open []deadletter.Item, least, margin time.Duration) (n int64) {
	for _, d := range open {
		if left := time.Until(d.Deadline); d.Team == team && left > least && left < dueWithin-margin {
			n++
		}
	}
	return n
}

// untoldDue: a team is told once of dead letters whose deadline is near, and again after there were none.
func (s *sim) untoldDue(open []deadletter.Item) {
	marks, _ := s.memory.Watermarks(context.Background())
	mark := markOf(marks, deadletter.DueNotice)
	if mark.Record != 0 || near(open, 20*time.Minute, clocksApart) == 0 || s.clocksOff {
		s.dueSince = time.Now()
	}
	if mark.Record == 0 || near(open, -clocksApart, -clocksApart) > 0 || s.clocksOff {
		s.lessSince = time.Now()
	}
	if ago := min(time.Since(s.lessSince), time.Since(s.noticing)); ago > atOnce {
		s.fail("nothing is due since %s, and %s is not to be told of what will be", s.lessSince.Sub(s.began), team)
	}
	if ago := min(time.Since(s.dueSince), time.Since(s.noticing), time.Since(mark.At)-noticeEvery); ago > atOnce {
		s.fail("nobody tells %s of what is due, since %s", team, s.dueSince.Sub(s.began))
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

// untoldLetters: a team knows of the dead letters that wait for it.
func (s *sim) untoldLetters(open []deadletter.Item) {
	marks, _ := s.memory.Watermarks(context.Background())
	told := markOf(marks, deadletter.NewsNotice).Record
	for _, d := range open {
		ago := min(time.Since(d.CreatedAt), time.Since(d.ChangedAt), time.Since(s.noticing), time.Since(s.noticedAt[notify.TypeNew])-noticeEvery)
		if d.Team == team && d.Record > told && ago > s.mayWait()+clocksApart {
			s.fail("nobody tells %s of the dead letter of %s", team, d.Subject.ID)
		}
	}
}
