package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/calendar"
	"retry-worker/internal/destination"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// TestADestinationSaysHowItIs in one sentence of the reader's language, for each phase and cause: on its page and in the list.
func TestADestinationSaysHowItIs(t *testing.T) {
	down := testkit.Failures()
	var said strings.Builder
	for _, tt := range []struct {
		name  string
		first []destination.Event // 10 minutes before
		then  []destination.Event // 5 minutes before
		held  int
	}{
		{"up", nil, nil, 0},
		{"queue", nil, nil, 2},
		{"failures", down, nil, 2},
		{"nobody", down, nil, 0},
		{"known", down, nil, 0},
		{"probe", []destination.Event{destination.Probed{}, destination.Probed{}}, nil, 2},
		{"person", []destination.Event{destination.Order{Verb: destination.HoldClaims, Until: now.Add(26 * time.Hour)}}, nil, 2},
		{"testing", down, []destination.Event{destination.Turn{Waiting: 2, Canary: 1}}, 2},
		{"ramping", down, []destination.Event{destination.Order{Verb: destination.ReleaseAt, PerMinute: 0.5}}, 2},
		{"ordered", down, []destination.Event{destination.Order{Verb: destination.TreatAsUp, Until: now.Add(time.Hour)}}, 0},
		{"shut", nil, nil, 2},
		{"shut, too", down, nil, 2},
	} {
		w := newWorld(t, now)
		if strings.HasPrefix(tt.name, "shut") {
			var err error
			w.Calendar, err = calendar.New(time.UTC, []calendar.Window{{Hours: "16:00-18:00"}}, nil)
			testkit.Must(t, err)
		}
		p := testkit.NewPortal(tt.name, w.Journal, now.Add(-9*time.Hour))
		if tt.name == "known" {
			p.Recovers(t, now.Add(-8*time.Hour), 5)
		}
		p.Happens(t, now.Add(-10*time.Minute), tt.first...)
		p.Happens(t, now.Add(-5*time.Minute), tt.then...)
		for i := range tt.held {
			p.Hold(t, "CLM-"+string(rune('1'+i)), int64(100*i+100), now.Add(30*time.Hour))
		}
		s := open(t, w)
		s.lang = "pt-BR"
		d := s.page(portalAddress(tt.name))
		standing := text(d.classed("standing")[0])
		s.page("/destinations").mustSay(standing)
		fmt.Fprintf(&said, "%s\n%s\n", tt.name, standing)
	}
	golden.Check(t, "testdata/destinations.txt", said.String())
}

// TestNearestDeadlineFirst: of the claims that wait the one with the nearest deadline stands first.
func TestNearestDeadlineFirst(t *testing.T) {
	s := open(t, sample(t, now))
	if rows := s.page(portalAddress(portalName)).rowLinks(); len(rows) != 2 || text(rows[0]) != heldID {
		t.Errorf("%d claims wait, the nearest deadline is not first", len(rows))
	}
}

// TestOrdersAboutADestination: what was ordered is in the audit, with its reason; what is wrong is said beside what was
// written.
func TestOrdersAboutADestination(t *testing.T) {
	s := open(t, sample(t, now))
	at := portalAddress(portalName)
	reason := url.Values{"reason": {"combinado com a operadora"}}
	with := func(name, value string) url.Values { return url.Values{"reason": reason["reason"], name: {value}} }
	for _, tt := range []struct {
		verb  string
		form  url.Values
		wrong string
		word  string
	}{
		{"hold", with("until", "2026-03-02T18:00"), "", "held"},
		{"hold", with("until", "2026-03-02T11:59"), "choose a time within the next 7 days", "held"},
		{"hold", with("until", "amanhã"), "choose a time within the next 7 days", "held"},
		{"hold", url.Values{"until": {"2026-03-02T18:00"}}, "write the reason", "held"},
		{"probe", reason, "", "held"},
		{"release", with("perMinute", "61"), "choose a pace above 0", "held"},
		{"release", with("perMinute", "x"), "choose a pace above 0", "held"},
		{"release", with("perMinute", "2,5"), "", "ramping up"},
		{"up", with("until", "2026-03-20T18:00"), "choose a time within the next 7 days", "ramping up"},
		{"up", with("until", "2026-03-02T18:00"), "", "up"},
	} {
		w := s.post(at+"/"+tt.verb, tt.form)
		if tt.wrong != "" {
			d := s.doc(w, http.StatusUnprocessableEntity)
			if d.id("wrong") == nil || !strings.Contains(text(d.id("wrong")), tt.wrong) || !has(d.id("order-"+tt.verb), "open") {
				t.Errorf("%s %v is not refused with %q", tt.verb, tt.form, tt.wrong)
			}
		} else if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != at+"?done="+tt.verb+"#result" {
			t.Errorf("%s %v is answered with %d %s", tt.verb, tt.form, w.Code, to)
		} else if len(s.page(strings.TrimSuffix(to, "#result")).classed("notice ok")) != 1 {
			t.Errorf("%s does not say that it was done", tt.verb)
		}
		if d := s.page(at); !strings.HasPrefix(text(d.id("portal-head")), "Destinations "+portalName+" "+tt.word+" ") {
			t.Errorf("after %s %v it is %s", tt.verb, tt.form, text(d.id("portal-head")))
		}
	}
	if d := s.as(access.Viewer).page(at); len(d.tags("form")) != 1 || !d.says("Your role (viewer) is read-only.") {
		t.Error("a viewer may order something")
	}
	s.doc(s.post("/destinations/nobody/probe", reason), http.StatusNotFound)
	s.page("/audit").mustSay("Order to treat the destination "+portalName+" as up.", "combinado com a operadora", "ana.souza",
		"Destination "+portalName+": down.")
}

// TestAHeldClaimIsDrawnAsHeld: what waits at a gate, until now or until it went, and the deadline of what is still to be sent.
func TestAHeldClaimIsDrawnAsHeld(t *testing.T) {
	s := open(t, sample(t, now))
	for id, waits := range map[string]string{heldID: "wait held", passedID: "wait held"} {
		d := s.page(subjectAddress("tiss-submission", id))
		if bars, n := d.classed(waits), len(d.classed("mark deadline")); len(bars) != 1 || n > 0 != (id == heldID) {
			t.Errorf("%s: %d waits and %d deadlines", id, len(bars), n)
		}
	}
}
