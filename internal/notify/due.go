package notify

import (
	"cmp"
	"context"
	"time"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
)

// Due are the open dead letters of a team whose deadline is near.
type Due struct {
	// Until when, RFC 3339 in UTC.
	Until string `json:"until"`
	Count int64  `json:"count"`
	// Amount is what they are worth; empty where nothing is known of that.
	Amount string `json:"amount,omitempty"`
}

// The Records of a watermark of what is due.
const dueBelow, dueTold = 0, 1

// due tells a team once that more is due than its catalogue says, and again only once it was less in between and
// Interval has passed. It reports whether it made a message.
func (l *glance) due(ctx context.Context, team decision.Team, t *catalogue.Team, c Channel) (bool, error) {
	if t.Due == nil {
		return false, nil
	}
	until := l.now.Add(t.Due.Within)
	counts, err := l.Store.DeadLettersDue(ctx, "", l.now, until)
	if err != nil {
		return false, err
	}
	var n, cents int64
	for i := range counts {
		if counts[i].Team == team {
			n, cents = n+counts[i].N, cents+counts[i].Cents
		}
	}
	from := l.watermark(team, c, deadletter.DueNotice)
	to, much := from, t.Due.Exceeded(n, cents)
	switch {
	case much == (from.Record == dueTold):
		return false, nil
	case !much:
		to.Record = dueBelow
		_, err := l.Store.MoveWatermark(ctx, from, to, nil)
		return false, err
	case l.lately(from.At):
		return false, nil
	}
	notice, err := l.withOpen(ctx, TypeDue, team)
	if err != nil {
		return false, err
	}
	notice.Data.Due = &Due{instant(until), n, amount(cents)}
	if notice.Data.URL != "" {
		notice.Data.URL += "&sort=deadline"
	}
	to.Record, to.At = dueTold, l.now.Truncate(time.Millisecond)
	return true, l.make(ctx, from, to, notice)
}

// due in words.
func (v *view) due(r *renderer, n *Notice, team string) {
	d := cmp.Or(n.Data.Due, &Due{})
	what := r.count(d.Count, "pendência vence", "pendências vencem") + " até " + r.time(d.Until)
	v.Subject = subject(team, what)
	v.Title = "Equipe " + team + ": " + what + r.worth(d.Amount)
	v.Lead = "Depois do prazo, só com um novo prazo ou com autorização de quem decide. Na lista, as de prazo mais próximo vêm primeiro."
}
