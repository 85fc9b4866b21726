package notify

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/e2e/harness/mail"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// brasilia is the zone of the hospital. The digest is due at seven there.
var brasilia = time.FixedZone("-03", -3*60*60)

const (
	it, onDuty, registry = "ti@hospital.example", "plantao-ti@hospital.example", "cadastro@hospital.example"
)

// TestTeamsAreTold plays a day: the first dead letter is told at once, those that follow in one message an interval, by mail
// and by webhook; servers that fail delay and lose nothing; and nothing of a patient leaves.
func TestTeamsAreTold(t *testing.T) {
	t.Parallel()
	s := open(t, time.Date(2027, time.March, 2, 8, 0, 0, 0, brasilia))
	begun := time.Now()
	s.gathers(s.tellsTheFirst())
	late := s.mailServerIsDown()
	tries := s.webhookFails()
	s.restartTellsNothingTwice()
	mails, webhooks := s.expectNothingPersonal()
	done(t, "teams are told", "%d dead letters in %d mails and %d webhooks; the mail server was down, then deferred (told %s after it was back, by the worker's clock), "+
		"the receiver answered 500 (%d tries of one message); restarted and told nothing twice; nothing personal; %.1f s",
		s.claims, mails, webhooks, late.Round(time.Second), tries, time.Since(begun).Seconds())
}

// tellsTheFirst dead letter: to its team, by each of its ways, and to nobody else. It returns an instant before that was born.
func (s *fixture) tellsTheFirst() time.Time {
	s.t.Helper()
	before := s.clock.Now()
	s.die(ofIT, 1)
	m, c := s.mailed(it, 1)[0], s.posted(1)[0]
	for _, m := range append(s.mailed(onDuty, 1), m) { // each address has a mail of its own
		if len(m.To) != 1 || m.From != "retry-worker@hospital.example" {
			s.t.Errorf("the mail is from %s to %v", m.From, m.To)
		}
		s.expectMail(m, "1", "https://retry.hospital.example/dead-letters?team=ti")
	}
	if c.event.Data.Team != "ti" {
		s.t.Errorf("the webhook says %s", c.body)
	}
	return before
}

// expectMail holds that a mail says these, in its subject or its text.
func (s *fixture) expectMail(m mail.Message, want ...string) {
	s.t.Helper()
	for _, text := range want {
		if !strings.Contains(m.Subject+"\n"+m.Text, text) {
			s.t.Errorf("the mail does not say %q:\n%s\n%s", text, m.Subject, m.Text)
		}
	}
}

// gathers what dies within the interval: from the first dead letter on a team has one message of it an interval at most, by the
// worker's clock, however slow this machine is.
func (s *fixture) gathers(first time.Time) {
	s.t.Helper()
	s.die(ofIT, 40)
	s.die(ofRegistry, 3)
	s.expectMail(s.mailed(registry, 3)[0], "team=cadastro")
	mails, calls := s.mailed(it, 40), s.posted(40)
	if most := int(s.clock.Now().Sub(first) / interval); len(mails) > most || len(calls) > most {
		s.t.Errorf("%d mails and %d webhooks in %d intervals", len(mails), len(calls), most)
	}
	s.expectMail(mails[len(mails)-1], "41")
	if c := calls[len(calls)-1]; c.event.Data.New.Causes != 1 || c.event.Data.Open.Count != 41 {
		s.t.Errorf("the last webhook says %s", c.body)
	}
}

// mailServerIsDown while dead letters come, and then takes nothing for a while: the webhook is not held up, and the mail comes
// when the server does take mail, once.
func (s *fixture) mailServerIsDown() (late time.Duration) {
	s.t.Helper()
	wait.Until(s.t, "the mail server to be done with what it took: killed before, it would deliver it again", func() bool {
		log := s.mail.Log()
		return strings.Count(log, " <= ") == strings.Count(log, " Completed")
	}, s.mail.Log)
	s.mail.Kill()
	s.die(ofIT, 5)
	s.posted(5)
	s.rest(interval)
	s.awaitOverview("<dt>Message to team IT (ti)</dt>", "not sent yet", "connection refused")
	testkit.Must(s.t, s.mail.Defer())
	testkit.Must(s.t, s.mail.Restart(s.t.Context()))
	s.awaitDeferred()
	testkit.Must(s.t, s.mail.Accept())
	back := s.clock.Now()
	mails := s.mailed(it, 5)
	s.expectMail(mails[len(mails)-1], "46")
	return s.clock.Now().Sub(back)
}

// awaitOverview waits until the console's first page says all of this.
func (s *fixture) awaitOverview(want ...string) {
	s.t.Helper()
	var page string
	wait.Until(s.t, fmt.Sprintf("%q in the overview", want), func() bool {
		page = s.overview()
		return !slices.ContainsFunc(want, func(text string) bool { return !strings.Contains(page, text) })
	}, func() string { return page })
}

// overview is the console's first page.
func (s *fixture) overview() string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.worker.API+"/", nil)
	testkit.Must(s.t, err)
	r.Header.Set("Accept-Language", "en")
	status, _, page := testkit.Send(s.t, http.DefaultClient, r)
	if status != http.StatusOK {
		s.t.Fatalf("the overview: %d", status)
	}
	return page
}

// awaitDeferred waits until the mail server has put off a mail.
func (s *fixture) awaitDeferred() {
	s.t.Helper()
	wait.Until(s.t, "a mail put off", func() bool { return strings.Contains(s.mail.Log(), "temporarily rejected MAIL") })
}

// webhookFails with 500 for a while: the same message is sent again until it is taken, and the mail is not held up.
func (s *fixture) webhookFails() (tries int) {
	s.t.Helper()
	s.receiver.answer(http.StatusInternalServerError)
	s.die(ofIT, 2)
	mails := s.mailed(it, 2)
	s.expectMail(mails[len(mails)-1], "48")
	refused := 0
	s.receiver.Await(s.t, "webhooks that are refused", func() bool {
		refused = len(s.receiver.calls) - len(s.receiver.taken())
		return refused >= 2
	})
	s.receiver.answer(0)
	first := s.posted(2)[0]
	s.receiver.Look(func() {
		for _, c := range s.receiver.calls {
			if c.id == first.id {
				tries++
			}
			if c.status != http.StatusNoContent && c.id != first.id {
				s.t.Errorf("another message was sent before the refused one was taken: %s", c.body)
			}
		}
	})
	if tries < 3 {
		s.t.Errorf("it was taken at the try %d", tries)
	}
	return tries
}

// restartTellsNothingTwice of what was told before.
func (s *fixture) restartTellsNothingTwice() {
	s.t.Helper()
	testkit.Must(s.t, s.worker.Stop(s.t.Context(), wait.Limit))
	s.begin()
	s.die(ofRegistry, 1) // which is told, so that what was to be told again would have been
	s.mailed(registry, 1)
	if mails, webhooks := len(s.mails(it))-s.read[it], len(s.receiver.awaitTaken(s.t, 0))-s.read[receivers]; mails != 0 || webhooks != 0 {
		s.t.Errorf("after a restart there are %d mails and %d webhooks more of one team", mails, webhooks)
	}
}

// TestDigestIsTold: at seven a team has the day's digest by each of its ways, with the figures of its policies; one that
// asked for none has none.
func TestDigestIsTold(t *testing.T) {
	t.Parallel()
	seven := time.Date(2027, time.March, 1, 7, 0, 0, 0, brasilia)
	s := open(t, seven.Add(-50*time.Minute))
	s.die(ofIT, 1) // of more than one some may be told later
	s.mailed(it, 1)
	s.posted(1)
	s.die(ofRegistry, 1)
	all := s.awaitMails(it, 2)
	if early := seven.Sub(s.clock.Now()); early > 0 {
		t.Errorf("the digest came %s too early", early)
	}
	s.expectMail(all[1], "1", "https://retry.hospital.example/dead-letters?team=ti")
	c := s.receiver.awaitTaken(t, 2)[1]
	if d := c.event.Data; c.event.Type != "digest.daily" || d.Open.Count != 1 || len(d.KPIs) == 0 || d.Day != "2027-03-01" {
		t.Errorf("the digest says %s", c.body)
	}
	s.rest(interval)
	if of, ours := len(s.mails(registry)), len(s.mails(it)); of != 1 || ours != 2 {
		t.Errorf("%d mails came to a team without a digest and %d to one with it, expected 1 and 2", of, ours)
	}
	mails, webhooks := s.expectNothingPersonal()
	done(t, "the digest is told", "at seven in Brasília, %d mails and %d webhooks", mails, webhooks)
}
