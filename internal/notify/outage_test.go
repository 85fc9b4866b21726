package notify_test

import (
	"mime"
	"strings"
	"sync"
	"testing"
	"time"

	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/notify"
	"retry-worker/internal/statistics"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

const byMail = "faturamento/email:ti@hospital.example"

// portals are the destinations that a Gatherer is told of.
type portals struct {
	mu  sync.Mutex
	all []gate.Destination
	err error
	// ordered tells that what they are in is a person's order.
	ordered bool
}

func (p *portals) read() ([]gate.Destination, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]gate.Destination(nil), p.all...), p.err
}

// enter has unimed-sp be in a phase of the outage that began at since, and those who look look.
func (p *portals) enter(phase destination.Phase, since time.Time) {
	p.mu.Lock()
	outage := destination.Outage{Since: since, Cause: destination.CauseFailures, Failed: 11, Admitted: 12, Held: 210}
	p.all = []gate.Destination{{Name: "tiss", State: destination.New(since)}, {
		Name: "unimed-sp", Held: 210, Unrecorded: p.ordered, Deadline: since.Add(9 * time.Hour),
		State: destination.State{Phase: phase, Since: time.Now(), NextTest: since.Add(time.Minute), Outage: outage},
	}}
	p.mu.Unlock()
	time.Sleep(10 * time.Second)
}

// TestOutages: a team is told once that a destination is down, and once that it is up, whatever happens in between, and
// however many replicas tell.
func TestOutages(t *testing.T) {
	play(t, map[string]string{"faturamento": mailed, "ti": mailed}, func(w *world) {
		p := &portals{err: journal.ErrUnavailable}
		w.options.Destinations = p.read
		_, end := w.gather()
		w.gather()
		time.Sleep(time.Minute)
		p.mu.Lock()
		p.err = nil
		p.mu.Unlock()
		p.enter(destination.Up, time.Time{})
		w.none(byMail, "all is well")

		began := time.Now().Add(123456 * time.Nanosecond)
		p.ordered = true
		p.enter(destination.Down, began)
		w.none(byMail, "whoever acts has not followed the order yet")
		p.ordered = false
		began = time.Now().Add(123456 * time.Nanosecond)
		p.enter(destination.Down, began)
		n := w.send(byMail)
		want := notify.Outage{Destination: "unimed-sp", Cause: "failures", Failed: 11, Admitted: 12, Held: 210,
			Since: "2000-01-01T00:01:20Z", Deadline: "2000-01-01T09:01:20Z", NextTest: "2000-01-01T00:02:20Z"}
		if n.Type != notify.TypeDown || n.Data.Outage == nil || *n.Data.Outage != want ||
			n.Data.URL != "https://retry.hospital.example/destinations" {
			t.Errorf("told %s %+v, link %s", n.Type, n.Data.Outage, n.Data.URL)
		}
		for _, phase := range []destination.Phase{destination.Testing, destination.Down, destination.Ramping, destination.Down, destination.Ramping} {
			p.enter(phase, began)
			time.Sleep(time.Hour)
		}
		end()
		w.gather() // anew
		time.Sleep(time.Minute)
		w.none(byMail, "the outage lasts")
		p.enter(destination.Up, began)
		n = w.send(byMail)
		want.Until, want.Deadline, want.NextTest = "2000-01-01T05:03:20Z", "", ""
		if n.Type != notify.TypeUp || *n.Data.Outage != want {
			t.Errorf("told %s %+v", n.Type, n.Data.Outage)
		}
		time.Sleep(time.Hour)
		w.none(byMail, "it is over")

		second := time.Now()
		p.enter(destination.Down, second)
		p.enter(destination.Up, second) // while the receiver does not answer
		if n := w.send(byMail); n.Type != notify.TypeDown {
			t.Errorf("told %s", n.Type)
		}
		time.Sleep(10 * time.Second)
		if n := w.send(byMail); n.Type != notify.TypeUp {
			t.Errorf("told %s", n.Type)
		}
		third := time.Now() // too soon after the second to be told at once
		p.enter(destination.Down, third)
		p.enter(destination.Up, third)
		w.none(byMail, "it came back")
		p.enter(destination.Down, time.Now())
		w.none(byMail, "it has just gone again")
		time.Sleep(15 * time.Minute)
		w.send(byMail)
		w.none(tiByMail, "no policy with a destination is theirs")
	})
}

// TestMails: what is told of outages, and on a Monday, in words that those who bill use, is a file of testdata for each.
func TestMails(t *testing.T) {
	outage := func(o notify.Outage) notify.Data {
		o.Destination, o.Label, o.Since = "unimed-sp", "Unimed SP", "2026-11-21T17:02:00Z"
		return notify.Data{Outage: &o, URL: "https://retry.hospital.example/destinations"}
	}
	for name, tt := range map[string]struct {
		kind string
		data notify.Data
	}{
		"down-failures": {notify.TypeDown, outage(notify.Outage{Cause: "failures", Failed: 11, Admitted: 12, Held: 1210,
			NextTest: "2026-11-21T17:25:00Z", Deadline: "2026-11-21T21:00:00Z"})},
		"down-probe":  {notify.TypeDown, outage(notify.Outage{Cause: "probe", Held: 1})},
		"down-person": {notify.TypeDown, outage(notify.Outage{Cause: "person"})},
		"up":          {notify.TypeUp, outage(notify.Outage{Until: "2026-11-21T18:20:00Z", Held: 210})},
		"up-nobody":   {notify.TypeUp, outage(notify.Outage{Until: "2026-11-21T18:20:00Z"})},
		"digest": {notify.TypeDigest, notify.Data{Day: "2026-11-23", Open: notify.Summary{Count: 40},
			Due:       &notify.Due{Until: "2026-11-24T10:00:00Z", Count: 12, Amount: "184200.50"},
			FollowUps: map[string]int64{"": 1210, "ana.souza": 2}}},
		"digest-whole": {notify.TypeDigest, wholeDigest()},
		"news":         {notify.TypeNew, newsNotice().Data},
		"cause":        {notify.TypeCauses, newCauses()[0]},
		"causes":       {notify.TypeCauses, newCauses()[1]},
	} {
		t.Run(name, func(t *testing.T) {
			b := openMailbox(t, mailOptions{})
			tt.data.Team = "faturamento"
			const to = "faturamento@hospital.example"
			err := b.mailer(notify.Plaintext).Send(t.Context(), "id", &notify.Notice{Type: tt.kind, Timestamp: "2026-11-21T17:03:00Z", Data: tt.data}, to)
			testkit.Must(t, err)
			head, found := parts(t, b.deliveries()[0].message)
			subject, _ := new(mime.WordDecoder).DecodeHeader(head.Get("Subject"))
			golden.Check(t, "testdata/"+name+".txt", subject+"\n\n"+strings.ReplaceAll(found["text/plain"], "\r\n", "\n"))
			golden.Check(t, "testdata/"+name+".html", strings.ReplaceAll(found["text/html"], "\r\n", "\n"))
		})
	}
}

// newCauses are the data of a notice of one cause, and of several.
func newCauses() [2]notify.Data {
	known := notify.KnownCause{Policy: "tiss-submission", Reason: "TIMEOUT", Pattern: "glosa <b>", URL: "https://retry.hospital.example/causes/0a"}
	first := time.Date(2026, time.November, 21, 16, 2, 0, 0, time.UTC)
	news := journal.News{Failures: 12, Claims: 9, First: first, Last: first.Add(39 * time.Minute), Destination: "unimed-sp"}
	c := notify.NewCause{KnownCause: known, News: news, Label: "Unimed SP"}
	back := c
	back.Before = &journal.Before{Last: first.AddDate(0, -4, 0), Failures: 41, Recovered: 1, Closed: 30}
	return [2]notify.Data{{NewCauses: []notify.NewCause{c}}, {NewCauses: []notify.NewCause{back, c}, URL: "https://retry.hospital.example/"}}
}

// wholeDigest has something of everything that a digest may have.
func wholeDigest() notify.Data {
	oldest, value, half, claims := "2026-11-01T10:00:00Z", 0.9, 30.0, 4.0
	yes, no := true, false
	return notify.Data{Day: "2026-11-24", URL: "https://retry.hospital.example/dead-letters?team=faturamento",
		Open: notify.Summary{Count: 9, Amount: "1234.50", Causes: 3, Oldest: &oldest, OtherCount: 1, Top: []notify.Cause{
			{Policy: "tiss-submission", Reason: "AUTHORIZATION_DENIED", Count: 7, Pattern: "glosa <b>", Hint: "Peça a autorização.", Oldest: oldest, Amount: "10.00"},
			{Policy: "gone", Reason: "NEW_REASON", Count: 1, Oldest: "yesterday"},
		}},
		Ages: &notify.Ages{Day: 1, Week: 2, Older: 6}, Expiring: 2,
		Taught: []notify.Taught{{KnownCause: notify.KnownCause{Policy: "tiss-submission", Reason: "TIMEOUT", Pattern: "x & y"}, Classification: "PERMANENT", At: oldest},
			{KnownCause: notify.KnownCause{Policy: "tiss-submission", Reason: "TIMEOUT"}, Classification: "TRANSIENT", At: oldest}},
		Advised: []notify.Advised{{KnownCause: newCauses()[0].NewCauses[0].KnownCause, Closed: 41}},
		KPIs: []statistics.KPI{
			{Policy: "tiss-submission", Name: "success_rate", Window: 24, Unit: "ratio", Value: &value, Goals: []statistics.Goal{
				{Rule: "RN-BIL-005", Kind: statistics.Target, Compare: ">=", Limit: 0.8, Holds: &yes}, {Rule: "RN-BIL-004", Kind: statistics.Target, Compare: ">=", Limit: 0.95, Holds: &no}}},
			{Policy: "tiss-submission", Name: "backoff_mean", Window: 168, Unit: "minutes", Value: &half, Goals: []statistics.Goal{
				{Rule: "RN-BIL-005", Kind: statistics.Alert, Compare: ">", Limit: 30, Holds: &no}, {Rule: "RN-BIL-004", Kind: statistics.Alert, Compare: ">", Limit: 20, Holds: &yes}}},
			{Policy: "job-queue", Name: "success_rate", Window: 24, Unit: "ratio"},
			{Policy: "job-queue", Name: "other", Window: 24, Unit: "seconds", Value: &value},
			{Policy: "job-queue", Name: "already_accepted", Window: 168, Unit: "claims", Value: &claims},
		}}
}
