package api_test

import (
	"fmt"
	"testing"
	"time"

	"retry-worker/internal/api"
	"retry-worker/internal/calendar"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/testkit"
)

// TestDestinations: what is told of one that is down, and what people's orders make of it.
func TestDestinations(t *testing.T) {
	c := open(t)
	c.portal(aPortal)
	const at = "/destinations/" + aPortal
	items := c.get("vera", "/destinations").body["items"].([]any)
	if d := items[len(items)-1].(map[string]any); d["name"] != aPortal || d["state"] != "down" || d["cause"] != "failures" || d["held"] != 1.0 ||
		d["nextTest"] != "2026-03-02T10:01:00Z" || d["nearestDeadline"] != "2026-03-02T15:00:00Z" || d["perMinute"] != 0.0 {
		t.Errorf("it is %v", d)
	} else if back := d["expectedBack"].(map[string]any); back["median"] != "2026-03-02T10:30:00Z" || back["earliest"] != "2026-03-02T10:30:00Z" || back["latest"] != "2026-03-02T10:30:00Z" {
		t.Errorf("it is expected back %v", back)
	}
	if a := c.get("vera", "/subjects/tiss-submission/CLM-007-1"); a.body["heldSince"] != "2026-03-02T10:00:00Z" || a.body["status"] != "pendente" {
		t.Errorf("the claim is %s", a.text)
	}
	for _, tt := range []struct {
		order, body, state, until, up string
		pace                          float64
	}{
		{"hold", `{"until":"2026-03-02T18:00:00-03:00","reason":"x"}`, "down", "2026-03-02T21:00:00Z", "", 0},
		{"probe", `{"reason":"x"}`, "down", "2026-03-02T21:00:00Z", "", 0},
		{"release", `{"perMinute":2.5,"reason":"x"}`, "ramping", "", "", 2.5},
		{"release", `{"until":"2026-03-02T12:00:00Z","reason":"x"}`, "up", "", "2026-03-02T12:00:00Z", 60},
	} {
		d := c.post("otto", at+"/"+tt.order, tt.body).body
		until, _ := d["heldUntil"].(string)
		up, _ := d["upUntil"].(string)
		if d["state"] != tt.state || until != tt.until || up != tt.up || d["perMinute"] != tt.pace {
			t.Errorf("after %s %s it is %v", tt.order, tt.body, d)
		}
	}
}

// TestDestinationThatIsClosed: people see that its calendar has it closed, why, and until when.
func TestDestinationThatIsClosed(t *testing.T) {
	hours, _ := calendar.ParseHours("08:00-18:00")
	c, err := calendar.New(time.UTC, []calendar.Window{{Hours: hours}}, calendar.Holidays("BR"))
	testkit.Must(t, err)
	settings := destination.Defaults()
	settings.Calendar = c
	christmas := time.Date(2026, 12, 25, 10, 0, 0, 0, time.UTC)
	for at, want := range map[time.Time]string{
		christmas:                   "0 Natal (Lei 662/1949) 2026-12-26T08:00:00Z",
		christmas.AddDate(0, 0, -1): "60 <nil> <nil>",
	} {
		d := api.DestinationOf(&gate.Destination{Settings: settings, State: destination.New(at)}, at)
		var closed, opens any
		if d.Closed != nil {
			closed, opens = *d.Closed, *d.OpensAt
		}
		if got := fmt.Sprint(d.PerMinute, " ", closed, " ", opens); got != want {
			t.Errorf("%s: %s, want %s", at, got, want)
		}
	}
}
