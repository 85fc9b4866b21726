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
)

const byMail = "faturamento/email"

// portals are the destinations that a Gatherer is told of.
type portals struct {
	mu  sync.Mutex
	all []gate.Destination
	err error
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
		Name: "unimed-sp", Held: 210, Deadline: since.Add(9 * time.Hour),
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
		p.enter(destination.Down, began)
		n := w.send(byMail)
		want := notify.Outage{Destination: "unimed-sp", Cause: "failures", Failed: 11, Admitted: 12, Held: 210,
			Since: "2000-01-01T00:01:10Z", Deadline: "2000-01-01T09:01:10Z", NextTest: "2000-01-01T00:02:10Z"}
		if n.Type != notify.TypeDown || n.Data.Outage == nil || *n.Data.Outage != want ||
			n.Data.URL != "https://retry.hospital.example/destinations" {
			t.Errorf("told %s %+v, link %s", n.Type, n.Data.Outage, n.Data.URL)
		}
		for _, phase := range []destination.Phase{
			destination.Testing, destination.Down, destination.Ramping, destination.Down, destination.Ramping,
		} {
			p.enter(phase, began)
			time.Sleep(time.Hour)
		}
		end()
		w.gather() // anew
		time.Sleep(time.Minute)
		w.none(byMail, "the outage lasts")
		p.enter(destination.Up, began)
		n = w.send(byMail)
		want.Until, want.Deadline, want.NextTest = "2000-01-01T05:03:10Z", "", ""
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

// TestMailOfOutage: in words that those who bill use.
func TestMailOfOutage(t *testing.T) {
	const (
		down = "[retry-worker] Faturamento: o portal Unimed SP está fora do ar"
		up   = "[retry-worker] Faturamento: o portal Unimed SP voltou"
		wait = "As guias esperam, sem perder tentativas, e seguem sozinhas quando ele voltar"
	)
	for name, test := range map[string]struct {
		kind          string
		outage        notify.Outage
		subject, text string
	}{
		"failures": {notify.TypeDown, notify.Outage{Cause: "failures", Failed: 11, Admitted: 12, Held: 1210,
			NextTest: "2026-11-21T17:25:00Z", Deadline: "2026-11-21T21:00:00Z"}, down,
			"O portal Unimed SP não responde desde 21/11/2026 14:02\n\n11 de 12 envios falharam. " + wait +
				"; no momento 1.210 guias aguardam. O próximo envio de teste é em 21/11/2026 14:25. O prazo mais próximo é " +
				"21/11/2026 18:00: a guia que não puder ser enviada a tempo vira pendência da equipe antes disso.\n\nAbrir"},
		"probe": {notify.TypeDown, notify.Outage{Cause: "probe", Held: 1}, down,
			"A verificação do portal falhou duas vezes seguidas. " + wait + "; no momento 1 guia aguarda.\n"},
		"person": {notify.TypeDown, notify.Outage{Cause: "person"}, down,
			"Os envios ao portal Unimed SP estão suspensos desde 21/11/2026 14:02\n\nUma pessoa suspendeu os envios. " + wait},
		"up": {notify.TypeUp, notify.Outage{Until: "2026-11-21T18:20:00Z", Held: 210}, up,
			"O portal Unimed SP voltou a responder\n\nFicou fora do ar de 21/11/2026 14:02 a 21/11/2026 15:20. " +
				"210 guias esperaram por ele, sem perder tentativas. Os envios seguem normalmente; não há nada a fazer.\n"},
		"up, and nobody waited": {notify.TypeUp, notify.Outage{Until: "2026-11-21T18:20:00Z"}, up,
			"15:20. Os envios seguem normalmente; não há nada a fazer.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := openMailbox(t, mailOptions{})
			test.outage.Destination, test.outage.Label, test.outage.Since = "unimed-sp", "Unimed SP", "2026-11-21T17:02:00Z"
			n := &notify.Notice{Type: test.kind, Timestamp: "2026-11-21T17:03:00Z", Data: notify.Data{
				Team: "faturamento", Outage: &test.outage, URL: "https://retry.hospital.example/destinations",
			}}
			to := []string{"faturamento@hospital.example"}
			if _, err := b.mailer(notify.Plaintext).Send(t.Context(), "id", n, to, to); err != nil {
				t.Fatal(err)
			}
			head, found := parts(t, b.deliveries()[0].message)
			subject, _ := new(mime.WordDecoder).DecodeHeader(head.Get("Subject"))
			text := strings.ReplaceAll(found["text/plain"], "\r\n", "\n")
			if subject != test.subject || !strings.Contains(text, test.text) || strings.Contains(text, "Em aberto") {
				t.Errorf("subject %q, text\n%s", subject, text)
			}
			if html := found["text/html"]; !strings.Contains(html, "Unimed SP") {
				t.Errorf("the page says\n%s", html)
			}
		})
	}
}
