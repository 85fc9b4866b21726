package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"retry-worker/internal/access"
	"retry-worker/internal/calendar"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// TestADestinationSaysHowItIs in one sentence of the reader's language, for each phase and cause.
func TestADestinationSaysHowItIs(t *testing.T) {
	const waiting = "2 guias aguardam; "
	failed := destination.Failed{}
	down := []destination.Event{failed, failed, failed, failed, failed}
	canary := destination.Turn{Waiting: 2, Canary: "1"}
	for _, tt := range []struct {
		name    string
		first   []destination.Event // 10 minutes before
		then    []destination.Event // 5 minutes before
		held    int
		word    string
		says    string
		english string
	}{
		{"up", nil, nil, 0, "no ar", "No ar: as guias são enviadas normalmente.", "It is up: claims are sent as they come."},
		{"queue", nil, nil, 2, "no ar", "No ar, com até 60 envios por minuto. 2 guias aguardam.", "It is up, and takes up to 60 submissions a minute. 2 claims wait."},
		{"failures", down, nil, 2, "fora do ar", "O portal failures não responde desde 11:50 (5 de 5 envios falharam). " + waiting + "a próxima tentativa de teste é às 11:51.",
			"The portal failures has not answered since 11:50 (5 of 5 submissions failed). 2 claims wait; the next test is at 11:51."},
		{"nobody", down, nil, 0, "fora do ar", "O portal nobody não responde desde 11:50 (5 de 5 envios falharam). A próxima guia será enviada como teste.",
			"The portal nobody has not answered since 11:50 (5 of 5 submissions failed). The next claim is sent as a test."},
		{"known", down, nil, 0, "fora do ar", "O portal known não responde desde 11:50 (5 de 5 envios falharam). " +
			"Previsão de volta: 12:10 (8 em cada 10 quedas como esta terminam entre 12:02 e 12:18). A próxima guia será enviada como teste.",
			"The portal known has not answered since 11:50 (5 of 5 submissions failed). " +
				"Expected back: 12:10 (8 in 10 outages like this end between 12:02 and 12:18). The next claim is sent as a test."},
		{"probe", []destination.Event{destination.Probed{}, destination.Probed{}}, nil, 2, "fora do ar",
			"O portal probe não responde desde 11:50 (a verificação do endereço falhou duas vezes). " + waiting + "a próxima tentativa de teste é às 11:51.",
			"The portal probe has not answered since 11:50 (its address failed two checks). 2 claims wait; the next test is at 11:51."},
		{"person", []destination.Event{destination.Hold{Until: now.Add(26 * time.Hour)}}, nil, 2, "parado",
			"O portal person está parado de 11:50 até 03/03 14:00, por ordem de alguém. " + waiting + "a próxima tentativa de teste é às 03/03 14:00.",
			"The portal person is held from 11:50 until 3 Mar 14:00, as a person ordered. 2 claims wait; the next test is at 3 Mar 14:00."},
		{"testing", down, []destination.Event{canary}, 2, "em teste", "O portal testing não responde desde 11:50 (5 de 5 envios falharam). " + waiting + "uma guia de teste foi enviada às 11:55.",
			"The portal testing has not answered since 11:50 (5 of 5 submissions failed). 2 claims wait; a test claim was sent at 11:55."},
		{"ramping", down, []destination.Event{destination.ReleaseAt{Pace: 0.5}}, 2, "retomando", "O portal ramping voltou a responder às 11:55. " + waiting + "saem 0,5 por minuto; a última, em até 4 min.",
			"The portal ramping has answered again since 11:55. 2 claims wait; 0.5 a minute go; the last within 4 min."},
		{"ordered", down, []destination.Event{destination.TreatAsUp{Until: now.Add(time.Hour)}}, 0, "no ar", "Tratado como no ar até 13:00, por ordem de alguém: nenhuma guia é parada.",
			"It is treated as up until 13:00, as a person ordered: no claim is held."},
		{"shut", nil, nil, 2, "fechado", "Fora do horário de envio; próxima abertura: 13:00. 2 guias aguardam.", "It is closed; next opening: 13:00. 2 claims wait."},
		{"shut, too", down, nil, 2, "fora do ar", "O portal shut, too não responde desde 11:50 (5 de 5 envios falharam). Fora do horário de envio; próxima abertura: 13:00. 2 guias aguardam.",
			"The portal shut, too has not answered since 11:50 (5 of 5 submissions failed). It is closed; next opening: 13:00. 2 claims wait."},
	} {
		w := newWorld(t, now)
		if strings.HasPrefix(tt.name, "shut") {
			var err error
			w.Calendar, err = calendar.New(time.UTC, []calendar.Window{{Hours: calendar.Hours{From: 16 * time.Hour, Until: 18 * time.Hour}}}, nil)
			testkit.Must(t, err)
		}
		p := testkit.NewPortal(tt.name, w.Journal, now.Add(-time.Hour))
		if tt.name == "known" {
			p = testkit.NewPortal(tt.name, w.Journal, now.Add(-9*time.Hour))
			p.Recovers(t, now.Add(-8*time.Hour), 5)
		}
		p.Happens(t, now.Add(-10*time.Minute), tt.first...)
		p.Happens(t, now.Add(-5*time.Minute), tt.then...)
		for i := range tt.held {
			p.Hold(t, "CLM-"+string(rune('1'+i)), int64(100*i+100), now.Add(30*time.Hour))
		}
		s := open(t, w)
		for lang, says := range map[string]string{"pt-BR": tt.says, "en": tt.english} {
			s.lang = lang
			for _, address := range []string{"/destinations", portalAddress(tt.name)} {
				d := s.page(address)
				if checkPage(t, d, address, lang); !d.says(says) || lang == "pt-BR" && !d.says(tt.word+" "+says) {
					t.Errorf("%s (%s) does not say %q: %s", address, lang, says, text(d.tags("main")[0]))
				}
			}
			if d := s.page("/"); d.says(says) != (tt.word != "no ar" && tt.word != "fechado") {
				t.Errorf("the overview (%s) of a destination that is %s: %s", lang, tt.word, text(d.tags("main")[0]))
			}
		}
	}
}

// TestADestinationsDay is drawn without gaps, to scale but for what would not be seen.
func TestADestinationsDay(t *testing.T) {
	s := open(t, sample(t, now))
	d := s.page(portalAddress(portalName))
	var drawn []string
	for _, n := range d.all(func(n *html.Node) bool { return n.Data == "rect" && attr(n.Parent, "class") == "run-bar" }) {
		drawn = append(drawn, attr(n, "class")+" "+attr(n, "x")+" "+attr(n, "width"))
	}
	const want = "o-up 0.00 930.56, o-down 930.56 3.47, o-ramping 934.03 3.47, o-up 937.50 22.22, o-down 959.72 40.28"
	if got := strings.Join(drawn, ", "); got != want {
		t.Errorf("drawn is %s, want %s", got, want)
	}
	if !d.says("up 22 h 52 min") || !d.says("down 1 h 3 min") || !d.says("Next claims") || !d.says(heldID) {
		t.Errorf("the page says %s", text(d.tags("main")[0]))
	}
	if rows := d.all(func(n *html.Node) bool { return attr(n, "class") == "row-link" }); len(rows) != 2 || text(rows[0]) != heldID {
		t.Errorf("%d claims wait, the nearest deadline is not first", len(rows))
	}
}

// TestOrdersAboutADestination: what was ordered stands there with its reason; what is wrong is said beside what was written.
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
			if checkPage(t, d, at, "en"); d.id("wrong") == nil || !strings.Contains(text(d.id("wrong")), tt.wrong) || !has(d.id("order-"+tt.verb), "open") {
				t.Errorf("%s %v is not refused with %q", tt.verb, tt.form, tt.wrong)
			}
		} else if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != at+"?done="+tt.verb+"#result" {
			t.Errorf("%s %v is answered with %d %s", tt.verb, tt.form, w.Code, to)
		} else if d := s.page(strings.TrimSuffix(to, "#result")); !d.says("Done: ") || !d.says("combinado com a operadora") || !d.says("by ana.souza") {
			t.Errorf("after %s the page says %s", tt.verb, text(d.tags("main")[0]))
		}
		if d := s.page(at); !strings.HasPrefix(text(d.id("portal-head")), "Destinations "+portalName+" "+tt.word+" ") {
			t.Errorf("after %s %v it is %s", tt.verb, tt.form, text(d.id("portal-head")))
		}
	}
	if d := s.as(access.Viewer).page(at); len(d.tags("form")) != 0 || !d.says("Your role (viewer) is read-only.") {
		t.Error("a viewer may order something")
	}
	s.doc(s.post("/destinations/nobody/probe", reason), http.StatusNotFound)
	if d := s.page("/audit"); !d.says("Order to treat the destination "+portalName+" as up.") || !d.says("Destination "+portalName+": down.") {
		t.Errorf("the audit says %s", text(d.tags("main")[0]))
	}
}

// TestAHeldClaimIsDrawnAsHeld: what waits at a gate, until now or until it went.
func TestAHeldClaimIsDrawnAsHeld(t *testing.T) {
	s := open(t, sample(t, now))
	for id, says := range map[string]string{
		heldID:   "pending It waits for the portal unimed-sp since 11:02, and uses up no retry.",
		passedID: "Released to the portal unimed-sp, after 5 min.",
	} {
		d := s.page(subjectAddress("tiss-submission", id))
		bars := d.all(func(n *html.Node) bool { return attr(n, "class") == "wait held" && attr(n, "y") == "36" })
		if len(bars) != 2 || !d.says(says) { // of the wide picture and of the narrow one
			t.Errorf("%s: %d bars, and %s", id, len(bars), text(d.tags("main")[0]))
		}
	}
}

// TestThePortalShowsWhatWent: the sums of a day, and half an hour of it in numbers.
func TestThePortalShowsWhatWent(t *testing.T) {
	w := newWorld(t, now)
	p := testkit.NewPortal("unimed-sp", w.Journal, now.Add(-time.Hour))
	p.Fails(t, now.Add(-10*time.Minute))
	p.Counts(t, journal.Traffic{Replica: "a", Since: now.Add(-25 * time.Hour), Admitted: 1000})
	p.Counts(t, journal.Traffic{Replica: "a", Since: now.Add(-20 * time.Minute), Admitted: 7, Failed: 5, Held: 20})
	p.Counts(t, journal.Traffic{Replica: "b", Since: now.Add(-10 * time.Minute), Admitted: 2, Released: 20})
	s := open(t, w)
	d := s.page(portalAddress("unimed-sp"))
	if !d.says("let through 29 failed 5 held 20") || !d.says("11:30:00 29 20 5") {
		t.Errorf("it does not say what went: %s", text(d.tags("main")[0]))
	}
}
