package notify_test

import (
	"fmt"
	"testing"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/notify"
	"retry-worker/internal/statistics"
	"retry-worker/internal/testkit"
)

const withDigest = mailed + "\ndigest: true"

// nextDigest waits for ti's next digest, and sends what comes before it.
func (w *world) nextDigest() *notify.Data {
	w.t.Helper()
	for range 25 * 60 {
		if len(w.messages(tiByMail)) == 1 {
			if n := w.send(tiByMail); n.Type == notify.TypeDigest {
				return &n.Data
			}
		}
		time.Sleep(time.Minute)
	}
	w.t.Fatal("no digest in 25 hours")
	return nil
}

// TestDigest: what is open by cause and age, what of the team's own is due within a day, and the figures of the team's
// policies, those of the week on Mondays.
func TestDigest(t *testing.T) {
	play(t, map[string]string{"ti": withDigest}, func(w *world) {
		w.gather()
		began := time.Now() // on a Saturday; the digest is due at 10:00
		w.dieBefore(2, credentials, began.Add(33*time.Hour), "100.25")
		w.dieBefore(1, credentials, began.Add(35*time.Hour), "")
		w.dieBefore(1, patientData, began.Add(33*time.Hour), "7.00") // another team's
		w.die(1, credentials)
		theirs, _, err := w.Memory.DeadLetterPage(w.t.Context(), journal.DeadLetterFilter{Team: "ti", Sort: deadletter.ByAge}, "", 2)
		testkit.Must(w.t, err)
		for i, a := range []journal.Assignment{ // by the end of Saturday where the team lives, and as it ends
			{Assignee: "ana@hospital.example", FollowUpAt: began.Add(27*time.Hour - time.Second)}, {FollowUpAt: began.Add(27 * time.Hour)},
		} {
			_, err := w.DeadLetters.Assign(w.t.Context(), theirs[i].ID, a)
			testkit.Must(w.t, err)
		}
		saturday := w.nextDigest()
		if got := saturday.FollowUps; len(got) != 1 || got["ana"] != 1 {
			t.Errorf("on Saturday these are to be looked at again: %+v", got)
		}
		if due := saturday.Due; due == nil || due.Count != 2 || due.Amount != "200.50" || due.Until[:15] != "2000-01-02T10:0" || saturday.Open.Count != 4 {
			t.Errorf("on Saturday %+v of %d are due", due, saturday.Open.Count)
		}
		sunday := w.nextDigest()
		if got := sunday.FollowUps; len(got) != 2 || got["ana"] != 1 || got[""] != 1 {
			t.Errorf("on Sunday these are to be looked at again: %+v", got)
		}
		if due := sunday.Due; due == nil || due.Count != 1 || due.Amount != "" {
			t.Errorf("on Sunday %+v are due", due)
		}
		time.Sleep(2 * time.Hour)
		w.die(3, credentials)
		monday := w.nextDigest()
		if monday.Due != nil || monday.Day != "2000-01-03" || *monday.Ages != (notify.Ages{Day: 3, Week: 4}) || monday.Open.Causes != 1 || len(monday.Open.Top) != 1 {
			t.Errorf("on Monday %+v, due %+v, ages %+v", monday, monday.Due, monday.Ages)
		}
		for _, d := range []*notify.Data{saturday, sunday, monday} {
			policies, rate := map[string]bool{}, false
			for _, k := range d.KPIs {
				policies[k.Policy] = true
				rate = rate || k.Policy == "tiss-submission" && k.Name == "permanent_rate" && k.Value != nil && *k.Value == 1 && k.Window == statistics.Weekly.Hours()
			}
			if len(policies) != 4 || !policies["tiss-submission"] || rate != (d == monday) {
				t.Errorf("on %s figures of %v, the week's %t", d.Day, policies, rate)
			}
		}
		d := monday
		for d.Day < "2000-01-09" {
			d = w.nextDigest()
		}
		if *d.Ages != (notify.Ages{Week: 3, Older: 4}) {
			t.Errorf("after a week, ages %+v", d.Ages)
		}
	})
}

// TestDigestWarnsOfTheRetention: a team is told 30 days before what nobody decides on ends as expired.
func TestDigestWarnsOfTheRetention(t *testing.T) {
	play(t, map[string]string{"ti": withDigest}, func(w *world) {
		w.options.Retention = 35 * 24 * time.Hour
		w.gather()
		w.die(2, credentials)
		time.Sleep(3 * 24 * time.Hour)
		w.die(1, credentials)
		for d := w.nextDigest(); d.Day < "2000-01-08"; d = w.nextDigest() {
			if want := map[bool]int64{true: 2}[d.Day >= "2000-01-06"]; d.Expiring != want {
				t.Errorf("on %s %d expire within 30 days, want %d", d.Day, d.Expiring, want)
			}
		}
	})
}

// TestDigestEachDay: one a day, while the receiver takes them.
func TestDigestEachDay(t *testing.T) {
	play(t, map[string]string{"ti": withDigest}, func(w *world) {
		w.gather()
		for day := 1; day <= 9; day++ {
			d := w.nextDigest()
			if got, want := d.Day+time.Now().UTC().Format(" at 02 15"), fmt.Sprintf("2000-01-%02[1]d at %02[1]d 10", day); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

// TestLateDigest: who was down at the time sends the last one late, and no older ones.
func TestLateDigest(t *testing.T) {
	play(t, map[string]string{"ti": withDigest}, func(w *world) {
		_, end := w.gather()
		time.Sleep(time.Hour)
		end()
		time.Sleep(4*24*time.Hour + 12*time.Hour) // Wednesday, 13:00 UTC
		w.gather()
		var got []string
		for range 20 {
			time.Sleep(time.Minute)
			if len(w.messages(tiByMail)) == 1 {
				n := w.send(tiByMail)
				got = append(got, n.Type+" "+n.Data.Day)
			}
		}
		if want := "[digest.daily 2000-01-05]"; fmt.Sprint(got) != want {
			t.Errorf("got %v, want %s", got, want)
		}
	})
}

// TestClockPutBack: a day whose digest was sent has no other, and what else a team is to be told goes on.
func TestClockPutBack(t *testing.T) {
	play(t, map[string]string{"ti": withDigest}, func(w *world) {
		c := &testkit.Clock{}
		w.options.Clock = c
		w.gather()
		time.Sleep(26 * time.Hour)
		if n := w.send(tiByMail); n.Type != notify.TypeDigest {
			t.Fatalf("%s waits", n.Type)
		}
		time.Sleep(time.Minute)
		c.Advance(-12 * time.Hour)
		time.Sleep(3 * time.Hour)
		w.none(tiByMail, "the day's digest was sent")
		w.die(1, credentials)
		time.Sleep(time.Minute)
		w.send(tiByMail)
		c.Advance(-12 * time.Hour)
		w.die(1, credentials)
		time.Sleep(time.Minute)
		w.send(tiByMail)
	})
	play(t, map[string]string{"ti": withDigest}, func(w *world) { // from a year ahead
		c := &testkit.Clock{}
		w.options.Clock = c
		w.gather()
		time.Sleep(time.Minute)
		const ahead = 365 * 24 * time.Hour
		for _, move := range []time.Duration{ahead, -ahead, 0} {
			c.Advance(move)
			time.Sleep(25 * time.Hour)
			if n := w.send(tiByMail); n.Type != notify.TypeDigest {
				t.Errorf("%s waits, want a digest", n.Type)
			}
		}
	})
	play(t, map[string]string{"faturamento": mailed}, func(w *world) {
		c, p := &testkit.Clock{}, &portals{}
		w.options.Clock, w.options.Destinations = c, p.read
		w.gather()
		for range 2 {
			p.enter(destination.Down, c.Now())
			if n := w.send(byMail); n.Type != notify.TypeDown {
				t.Errorf("told %s, want the outage", n.Type)
			}
			time.Sleep(2 * time.Hour)
			c.Advance(-12 * time.Hour)
		}
	})
}

// TestDigestAsksWhatStillHolds: the digest asks the team that acts whether what was taught of a cause 90 days ago still
// holds, until it is taught anew or taken back.
func TestDigestAsksWhatStillHolds(t *testing.T) {
	play(t, map[string]string{"ti": withDigest}, func(w *world) {
		teach := func(text string, class decision.ErrorClassification, team decision.Team) string {
			a := w.Fail(decision.DefaultPolicy, fmt.Sprintf("CLM-1-%d", w.Now().UnixNano()), text, 0)
			_, err := w.DeadLetters.Teach(w.t.Context(), a.Fingerprint, journal.Teaching{Class: class, Team: team, Reason: "x", By: "ana"})
			testkit.Must(t, err)
			return a.Fingerprint
		}
		old := teach("setor aguarda o auditor", decision.Permanent, "ti")
		teach("lote sem remessa", decision.Permanent, "cadastro")
		teach("fila do lote em formação", decision.Transient, "") // faturamento acts at the limit
		time.Sleep(89 * 24 * time.Hour)
		teach("carimbo fora do lugar", decision.Permanent, "ti")
		w.gather()
		if d := w.nextDigest(); d.Taught != nil {
			t.Errorf("on %s it asks %+v", d.Day, d.Taught)
		}
		for range 2 {
			d := w.nextDigest()
			if len(d.Taught) != 1 || d.Taught[0].ID != old || d.Taught[0].Classification != "PERMANENT" || d.Taught[0].At != "2000-01-01T00:00:00Z" ||
				d.Taught[0].Pattern != "" {
				t.Errorf("on %s it asks %+v", d.Day, d.Taught)
			}
		}
		teach("setor aguarda o auditor", decision.Permanent, "ti")
		if d := w.nextDigest(); d.Taught != nil {
			t.Errorf("taught anew, it asks %+v", d.Taught)
		}
	})
}
