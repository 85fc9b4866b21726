package notify_test

import (
	"strings"
	"testing"
	"time"

	"retry-worker/internal/notify"
)

// TestDue: a team is told once that more is due than it said, whoever tells, and again after it was less in between.
func TestDue(t *testing.T) {
	play(t, map[string]string{"ti": mailed + "\ndue: {within: 12h, claims: 2, amount: 1000}"}, func(w *world) {
		_, end := w.gather()
		w.gather()
		began := time.Now()
		w.dieBefore(2, credentials, began.Add(20*time.Hour), "")
		w.dieBefore(1, credentials, began.Add(50*time.Hour), "5000.00")
		time.Sleep(time.Minute)
		w.send(tiByMail) // the news
		time.Sleep(9 * time.Hour)
		w.none(tiByMail, "two are due, and no more")

		w.dieBefore(1, credentials, began.Add(12*time.Hour), "999.99")
		time.Sleep(time.Minute)
		n := w.send(tiByMail)
		want := notify.Due{Until: "2000-01-01T21:01:00Z", Count: 3, Amount: "999.99"}
		if n.Type != notify.TypeDue || n.Data.Due == nil || n.Data.Due.Count != want.Count || n.Data.Due.Amount != want.Amount ||
			n.Data.Due.Until[:14] != want.Until[:14] || n.Data.Open.Count != 4 || !strings.HasSuffix(n.Data.URL, "/dead-letters?team=ti&sort=deadline") {
			t.Errorf("told %s %+v of %d, link %s", n.Type, n.Data.Due, n.Data.Open.Count, n.Data.URL)
		}
		time.Sleep(time.Minute)
		if n := w.send(tiByMail); n.Type != notify.TypeNew {
			t.Errorf("told %s, want the news of the last one", n.Type)
		}
		end()
		w.gather() // anew
		time.Sleep(2 * time.Hour)
		w.none(tiByMail, "it was told")
		time.Sleep(20 * time.Hour) // the deadlines have passed
		w.none(tiByMail, "one is due, and not for long")
		time.Sleep(8 * time.Hour)
		if n := w.send(tiByMail); n.Type != notify.TypeDue || n.Data.Due.Count != 1 || n.Data.Due.Amount != "5000.00" {
			t.Errorf("told %s %+v, want what is worth more than 1000", n.Type, n.Data.Due)
		}
	})
}
