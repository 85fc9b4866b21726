package notify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
)

// Outage is the time in which a destination does not answer.
type Outage struct {
	Destination string `json:"destination"`
	// Label is what people call it, where the catalogue says so.
	Label string `json:"label,omitempty"`
	// Cause is why it counts as down: failures, of which Failed of Admitted claims are the evidence, probe or person.
	Cause    string `json:"cause"`
	Failed   int    `json:"failed,omitempty"`
	Admitted int    `json:"admitted,omitempty"`
	// Since is when it went down, Until when it was up again; RFC 3339 in UTC, as all times.
	Since string `json:"since"`
	Until string `json:"until,omitempty"`
	// Held is how many claims wait or, once it is up, waited for it.
	Held int `json:"held"`
	// Deadline is the nearest of those that wait, NextTest when the next of them is sent ahead.
	Deadline string `json:"deadline,omitempty"`
	NextTest string `json:"nextTest,omitempty"`
}

// outageOf a destination that is, or was, down.
func outageOf(d *gate.Destination) *Outage {
	of := &d.State.Outage
	o := &Outage{Destination: clean(d.Name, maxPattern), Label: clean(d.Settings.Label, maxWord),
		Cause: string(of.Cause), Failed: of.Failed, Admitted: of.Admitted, Since: instant(of.Since)}
	if d.State.Phase == destination.Up {
		o.Until, o.Held = instant(d.State.Since), of.Held
		return o
	}
	o.Held, o.Deadline = d.Held, instantOrNone(d.Deadline)
	if d.State.Phase == destination.Down {
		o.NextTest = instantOrNone(d.State.NextTest)
	}
	return o
}

func instantOrNone(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return instant(t)
}

// outage tells a team of a destination that went down, or of one that is up again whose outage it was told of, and
// reports whether there was one. The team is one that acts when a policy with a destination gives up. An outage that
// follows another is told Interval after that began, if it lasts so long.
func (l *glance) outage(ctx context.Context, team decision.Team, w way) (bool, error) {
	acts := func(p *decision.Policy) bool { return p.Destination != nil && p.LimitTeam == team }
	policies := l.Catalogue().Policies
	if !slices.ContainsFunc(policies.Names(), func(name string) bool { return acts(policies[name]) }) {
		return false, nil
	}
	for i := range l.destinations {
		d := &l.destinations[i]
		from := l.watermark(team, w, deadletter.OutageNotice+deadletter.NoticeKind(d.Name))
		to, kind := from, TypeDown
		to.At, to.Record = d.State.Outage.Since.Truncate(time.Millisecond), downTold
		told, phase := !from.At.IsZero() && to.At.Equal(from.At), d.State.Phase
		switch {
		case d.Unrecorded: // when that is recorded
			continue
		case !told && (phase == destination.Down || phase == destination.Testing) && !l.lately(from.At):
		case told && from.Record == downTold && phase == destination.Up:
			to.Record, kind = upTold, TypeUp
		default:
			continue
		}
		n, err := l.ofOutage(ctx, kind, team, d)
		if err == nil {
			err = l.make(ctx, from, to, n)
		}
		return true, err
	}
	return false, nil
}

// The Records of an outage's watermark.
const downTold, upTold = 0, 1

func (l *glance) ofOutage(ctx context.Context, kind string, team decision.Team, d *gate.Destination) (*Notice, error) {
	n, err := l.withOpen(ctx, kind, team)
	if err != nil {
		return nil, err
	}
	n.Data.Outage = outageOf(d)
	if l.PublicURL != "" {
		n.Data.URL = l.PublicURL + "/destinations"
	}
	return n, nil
}

// outage in words.
func (v *view) outage(r *renderer, n *Notice, team string) {
	o := cmp.Or(n.Data.Outage, &Outage{})
	name, since := cmp.Or(o.Label, r.named("destination", o.Destination)), r.time(o.Since)
	v.Open = ""
	if n.Type == TypeUp {
		v.Subject = subject(team, "o portal "+name+" voltou")
		v.Title = "O portal " + name + " voltou a responder"
		v.Lead = "Ficou fora do ar de " + since + " a " + r.time(o.Until) + ". "
		if o.Held > 0 {
			v.Lead += r.count(int64(o.Held), "guia esperou", "guias esperaram") + " por ele, sem perder tentativas. "
		}
		v.Lead += "Os envios seguem normalmente; não há nada a fazer."
		return
	}
	v.Subject = subject(team, "o portal "+name+" está fora do ar")
	v.Title = "O portal " + name + " não responde desde " + since
	switch destination.Cause(o.Cause) {
	case destination.CausePerson:
		v.Title = "Os envios ao portal " + name + " estão suspensos desde " + since
		v.Lead = "Uma pessoa suspendeu os envios. "
	case destination.CauseProbe:
		v.Lead = "A verificação do portal falhou duas vezes seguidas. "
	default:
		v.Lead = fmt.Sprintf("%d de %s. ", o.Failed, r.count(int64(o.Admitted), "envio falhou", "envios falharam"))
	}
	v.Lead += "As guias esperam, sem perder tentativas, e seguem sozinhas quando ele voltar"
	if o.Held > 0 {
		v.Lead += "; no momento " + r.count(int64(o.Held), "guia aguarda", "guias aguardam")
	}
	v.Lead += "."
	if o.NextTest != "" {
		v.Lead += " O próximo envio de teste é em " + r.time(o.NextTest) + "."
	}
	if o.Deadline != "" {
		v.Lead += " O prazo mais próximo é " + r.time(o.Deadline) +
			": a guia que não puder ser enviada a tempo vira pendência da equipe antes disso."
	}
}
