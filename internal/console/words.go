package console

import (
	"fmt"
	"net/url"
	"strings"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
)

// reason in words; its code where it has none.
func (l Lang) reason(r decision.Reason) string { return l.Or("reason."+string(r), string(r)) }

// policy by the name people have for it; one of a catalogue's own has the one it was given.
func (l Lang) policy(name string) string { return l.Or("policy."+name, name) }

// retry says which of most retries number n is; one beyond them is extra.
func (l Lang) retry(n, most int64) string {
	switch {
	case n <= most:
		return l.T("retries.of", l.Number(n), l.Number(most))
	case most == 0:
		return l.T("retries.extra")
	default:
		return l.Count("retries.extra", most)
	}
}

// retries says how many of most retries were made.
func (l Lang) retries(n, most int64) string {
	if n <= most {
		return l.T("retries.of", l.Number(n), l.Number(most))
	}
	return l.T("retries.made", l.Number(most), l.Number(most), l.Number(n-most))
}

// team by the name people have for it; a catalogue's own teams have the one they were given.
func (l Lang) team(t decision.Team) string {
	if t == "" {
		return l.T("team.none")
	}
	return l.Or("team."+string(t), string(t))
}

// Badge is a state as a word with a shape, never by colour alone.
type Badge struct {
	// Tone chooses colour and shape: ok, bad, warn, wait or off.
	Tone string
	Word string
}

// tones of states, by their own types.
var tones = map[any]string{
	journal.DeadLetterOpen: "bad", journal.DeadLetterReprocessing: "wait", journal.DeadLetterDiscarded: "off",
	journal.DeadLetterRecovered: "ok", journal.DeadLetterSuperseded: "off",
	journal.StatusPending: "wait", journal.StatusResending: "wait", journal.StatusFailed: "bad",
	journal.StatusDelivered: "ok", journal.StatusDiscarded: "off",
	journal.DeliveryPending: "wait", journal.DeliveryTaken: "ok", journal.DeliveryNobody: "warn",
	journal.BulkPreparing: "wait", journal.BulkRunning: "wait", journal.BulkPaused: "warn", journal.BulkCancelled: "off",
	journal.BulkDone: "ok", journal.BulkPlanned: "wait", journal.BulkDecided: "wait", journal.BulkTaken: "wait",
	journal.BulkRecovered: "ok", journal.BulkDiscarded: "off", journal.BulkDeadAgain: "bad", journal.BulkNobody: "warn",
	journal.BulkRefused: "warn", journal.BulkSuperseded: "off",
	deadletter.Waiting: "ok", deadletter.Expected: "wait", deadletter.Nobody: "warn",
	decision.Permanent: "bad", decision.Transient: "wait", decision.Unknown: "warn",
	destination.Up: "ok", destination.Down: "bad", destination.Testing: "wait", destination.Ramping: "wait",
}

// badge of a state, which the text of that name says; its own word where there is none.
func (l Lang) badge(name string, state any) Badge {
	word := fmt.Sprint(state)
	return Badge{tones[state], l.Or(name+"."+word, word)}
}

// subjectURL is a subject's page, with more fields. A tenant is named where it is not the one that everybody has.
func subjectURL(s journal.Subject, more ...field) string {
	if s.Tenant != journal.DefaultTenant {
		more = append(more, field{"tenant", s.Tenant})
	}
	return address("/subjects/"+segment(s.Policy)+"/"+segment(s.ID), more...)
}

// segment is s as one segment of a path.
func segment(s string) string {
	return strings.ReplaceAll(url.PathEscape(s), "+", "%2B")
}
