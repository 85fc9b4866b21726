package notify_test

import (
	"fmt"
	"testing"
	"time"

	"retry-worker/internal/destination"
	"retry-worker/internal/kpi"
	"retry-worker/internal/notify"
	"retry-worker/internal/testkit"
)

const everyDigest = mailed + "\ndigests: [daily, weekly]"

// TestDigests: what is open by cause and age, with the figures of the team's policies.
func TestDigests(t *testing.T) {
	play(t, map[string]string{"ti": everyDigest}, func(w *world) {
		w.options.Interval = time.Second
		w.gather()
		w.die(4, credentials) // on Saturday, 0:00 UTC
		time.Sleep(30 * time.Second)
		w.send(tiByMail)
		time.Sleep(8 * 24 * time.Hour) // Sunday of the next week, 0:00 UTC: the digests of seven days and a Monday wait for one another
		w.die(3, credentials)
		var last *notify.Notice
		for range 50 {
			if len(w.messages(tiByMail)) == 1 {
				n := w.send(tiByMail)
				if n.Type == notify.TypeDaily {
					last = n
				}
			}
			time.Sleep(15 * time.Minute)
		}
		if last == nil {
			t.Fatal("no digest")
		}
		d := last.Data
		if d.Day != "2000-01-09" || d.Open.Count != 7 || d.Open.Causes != 1 || len(d.Open.Top) != 1 || d.Ages == nil || *d.Ages != (notify.Ages{Day: 3, Week: 0, Older: 4}) {
			t.Errorf("%+v, ages %+v", d, d.Ages)
		}
		policies, rate := map[string]bool{}, false
		for _, k := range d.KPIs {
			policies[k.Policy] = true
			rate = rate || k.Policy == "tiss-submission" && k.Name == "permanent_rate" && k.Value != nil && *k.Value == 1 && k.Window == kpi.Weekly.Hours()
		}
		if len(policies) != 4 || !policies["tiss-submission"] || !rate { // whatsapp-message names ti nowhere
			t.Errorf("figures of %v, rate %t", policies, rate)
		}
	})
}

// TestDigestsOnTheirDays: one a day and one on Mondays, while the receiver takes them.
func TestDigestsOnTheirDays(t *testing.T) {
	play(t, map[string]string{"ti": everyDigest}, func(w *world) {
		w.gather()
		time.Sleep(time.Minute)
		var got []string
		for range 9 * 24 * 12 {
			if len(w.messages(tiByMail)) == 1 {
				n := w.send(tiByMail)
				got = append(got, fmt.Sprintf("%s %s at %s", n.Type, n.Data.Day, time.Now().UTC().Format("02 15:04")))
			}
			time.Sleep(5 * time.Minute)
		}
		want := []string{"digest.daily 2000-01-01 at 01 10:01"}
		for day := 2; day <= 9; day++ {
			minute := 1
			if day == 3 { // a Monday
				want = append(want, "digest.weekly 2000-01-03 at 03 10:01")
				minute = 6
			}
			want = append(want, fmt.Sprintf("digest.daily 2000-01-%02d at %02d 10:%02d", day, day, minute))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got\n%v\nwant\n%v", got, want)
		}
	})
}

// TestLateDigest: who was down at the time sends the last one late, and no older ones.
func TestLateDigest(t *testing.T) {
	play(t, map[string]string{"ti": everyDigest}, func(w *world) {
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
		if want := "[digest.weekly 2000-01-03 digest.daily 2000-01-05]"; fmt.Sprint(got) != want {
			t.Errorf("got %v, want %s", got, want)
		}
	})
}

// TestClockPutBack: a day whose digest was sent has no other, and what else a team is to be told goes on.
func TestClockPutBack(t *testing.T) {
	play(t, map[string]string{"ti": everyDigest}, func(w *world) {
		c := &testkit.Clock{}
		w.options.Clock = c
		w.gather()
		time.Sleep(26 * time.Hour)
		if n := w.send(tiByMail); n.Type != notify.TypeDaily {
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
	play(t, map[string]string{"faturamento": mailed, "ti": mailed + "\ndue: {within: 2h, claims: 0, amount: 0}"}, func(w *world) {
		c, p := &testkit.Clock{}, &portals{}
		w.options.Clock, w.options.Destinations = c, p.read
		w.gather()
		for range 2 {
			p.enter(destination.Down, c.Now())
			if n := w.send(byMail); n.Type != notify.TypeDown {
				t.Errorf("told %s, want the outage", n.Type)
			}
			w.dieBefore(1, credentials, c.Now().Add(time.Hour), "1.00")
			time.Sleep(time.Minute)
			if n := w.send(tiByMail); n.Type != notify.TypeDue {
				t.Errorf("told %s, want what is due", n.Type)
			}
			time.Sleep(time.Minute)
			w.send(tiByMail) // its news
			time.Sleep(2 * time.Hour)
			c.Advance(-12 * time.Hour)
		}
	})
}
