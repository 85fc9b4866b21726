package gate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/calendar"
	"retry-worker/internal/testkit"
)

// TestPortalShuts: a portal takes claims until 18:00, and is down from 13:00 to 16:00. Claims that must go that day go
// before the others; what cannot go is given to a person an hour before the portal shuts; the others go when it opens on
// the next day, and none while it is shut.
func TestPortalShuts(t *testing.T) {
	const claims = 200
	synctest.Test(t, func(t *testing.T) {
		hour := func(n int) time.Time { return time.Date(2000, 1, 1, n, 0, 0, 0, time.UTC) }
		w := newWorld(t, func(*world) string {
			if now := time.Now(); now.After(hour(13)) && now.Before(hour(16)) {
				return "Read timed out after 30000 ms"
			}
			return ""
		})
		hours, _ := calendar.ParseHours("06:00-18:00")
		var err error
		w.settings.Calendar, err = calendar.New(time.UTC, []calendar.Window{{Hours: hours}}, nil)
		testkit.Must(t, err)
		w.settings.Pace.Most = 1
		w.start()
		defer w.stop()
		time.Sleep(time.Until(hour(13).Add(time.Minute)))
		for i := range claims {
			deadline := time.Time{}
			if i%2 == 0 {
				deadline = hour(24)
			}
			go w.process(fmt.Sprintf("CLM-%d-1", i), deadline)
			time.Sleep(30 * time.Second)
		}
		for end := hour(24 + 18); w.all() < claims && time.Now().Before(end); {
			time.Sleep(time.Minute)
		}
		var urgent, early, givenUp, later int
		for i := range claims {
			claim := fmt.Sprintf("CLM-%d-1", i)
			n := slices.IndexFunc(w.sent, func(s sending) bool { return s.claim == claim && s.ok })
			switch {
			case n < 0 && i%2 == 0 && strings.Contains(w.ended[claim], "cannot be met"):
				givenUp++
			case n < 0:
				t.Errorf("%s is not sent: %s", claim, w.ended[claim])
			case w.began.Add(w.sent[n].at).After(hour(18)):
				later++
			case i%2 == 0:
				urgent++
			case w.began.Add(w.sent[n].at).Before(hour(17)):
				early++
			}
		}
		for _, s := range w.sent {
			if at := w.began.Add(s.at); !w.settings.Calendar.IsOpen(at) {
				t.Errorf("%s is sent at %s", s.claim, at)
			}
		}
		const canaries = 2
		if urgent < 40 || urgent+givenUp != claims/2 || early > canaries || later == 0 {
			t.Errorf("of those that must go that day %d go and %d are given up; of the others %d go before, and %d on the next day",
				urgent, givenUp, early, later)
		}
	})
}
