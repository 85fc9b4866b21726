package console

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// chapter is one episode of a story, with its events.
type chapter struct {
	Number int64
	State  string
	Events []event
}

// event is one thing that happened.
type event struct {
	Record, episode int64
	// Mark is its shape in the timeline. Number is an attempt's; empty for anything else.
	Mark, Number string
	At           Moment
	at           time.Time
	// Text says what follows from it.
	Title, Text string
	// Error is an attempt's, redacted. Same reports whether error and rule are those of the attempt before, and left out.
	Error string
	Same  bool
	Why   *why // how the error was judged
	// Wait is the time until the next retry, which is at Next; empty if none follows. In the timeline it is how long the
	// wait that begins here lasts, if it is at least a minute; Held reports whether it is at a gate, Ahead whether it is
	// not over.
	Wait        string
	Next        Moment
	Held, Ahead bool
	// By and Words are a person's name and reason. Run is the address of the bulk run that it was part of, if any.
	By, Words, Run string
	Facts          []field // what else is known
}

// why says how an error was judged. Team acts on it; empty if it is retried.
type why struct {
	Class                     Badge
	Reason                    decision.Reason
	Rule, Matched, Hint, Team string
}

// entryBody has the fields of all kinds of audit entries; those that a kind lacks are empty.
type entryBody struct {
	Decision   journal.DeadLetterState      `json:"decision"`
	Reason     string                       `json:"reason"`
	By         string                       `json:"by"`
	Episode    int64                        `json:"episode"`
	RetryCount int64                        `json:"retryCount"`
	Outcome    string                       `json:"outcome"`
	Accepted   journal.Acceptance           `json:"accepted"`
	Rejection  string                       `json:"rejection"`
	Delivery   string                       `json:"delivery"`
	Fresh      bool                         `json:"fresh"`
	Message    string                       `json:"message"`
	Run        string                       `json:"bulkRun"`
	Verb       journal.BulkVerb             `json:"verb"`
	Note       journal.NoteVerb             `json:"note"`
	Action     journal.GateAction           `json:"action"`
	Class      decision.ErrorClassification `json:"errorClassification"`
	Team       decision.Team                `json:"responsibleTeam"`
	Forgotten  bool                         `json:"forgotten"`
	Deadline   time.Time                    `json:"submissionDeadline"`
	Assignee   string                       `json:"assignee"`
	FollowUpAt time.Time                    `json:"followUpAt"`
	// Of a claim at a gate.
	Destination string          `json:"destination"`
	Since       time.Time       `json:"since"`
	GiveUp      decision.Reason `json:"giveUp"`
}

// mostEvents bounds the events that a subject's page shows; the audit has them all.
const mostEvents = 200

// chapters returns the episodes in order, each with its events in the order of their records. An event of no episode
// joins the one before it. shown says that a long story begins with one of its last events.
func (v *visit) chapters(story *journal.Story) (all []chapter, shown string) {
	events := make([]event, 0, len(story.Attempts)+len(story.Entries))
	for i := range story.Attempts {
		a := &story.Attempts[i]
		e := v.attempt(story.Subject.Policy, a)
		if i > 0 {
			before := &story.Attempts[i-1]
			if before.Episode == a.Episode && before.Error == a.Error && before.Decision.MatchedRule == a.Decision.MatchedRule {
				e.Same, e.Error, e.Why = true, "", &why{Team: e.Why.Team}
			}
		}
		events = append(events, e)
	}
	for i := range story.Entries {
		events = append(events, v.entry(&story.Entries[i]))
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.Record, b.Record) })
	if n := len(events); n > mostEvents {
		events, shown = events[n-mostEvents:], v.T("events.last", v.Number(mostEvents), v.Number(int64(n)))
	}
	said := map[int64]string{} // of episodes' states
	for i := range story.Episodes {
		e := &story.Episodes[i]
		said[e.Number] = v.T("state.word." + string(e.StateAt(v.Now)))
	}
	for _, e := range events {
		if n := len(all); n == 0 || e.episode != 0 && all[n-1].Number != e.episode {
			all = append(all, chapter{Number: e.episode, State: said[e.episode]})
		}
		last := &all[len(all)-1]
		last.Events = append(last.Events, e)
	}
	return all, shown
}

func (v *visit) attempt(policy string, a *journal.Attempt) event {
	d := &a.Decision
	e := event{Record: a.Record, episode: a.Episode, Mark: markRetry, At: v.At(d.AnalysedAt), at: d.AnalysedAt,
		Number: v.Number(a.Number), Title: v.T("event.attempt", v.Number(a.Number)), Text: v.Say("event.follows", d),
		Error: a.Error,
		Why: &why{Class: v.class(d.ErrorClassification, d.Presumes()), Reason: d.Reason, Rule: d.MatchedRule,
			Matched: d.MatchedText, Hint: d.Hint(v.hint(policy, d.MatchedRule))}}
	if a.Revision > 0 {
		e.Title = v.T("event.revision", v.Number(a.Number))
	}
	if decision.SaysNothing(a.Error) {
		e.Why.Hint = v.T("decision.hint.no_text")
	}
	if d.Outcome == decision.MaxRetriesExceeded && d.Reason != decision.ReasonProbablyAccepted {
		e.Why.Reason = "" // the text says all of why the retries ended
	}
	if d.ShouldRetry() {
		e.Wait, e.Next = v.span(d.Wait()), v.At(d.NextRetryTime)
	} else {
		e.Mark, e.Why.Team = markFinal, v.team(d.Team)
	}
	return e
}

// entry returns an entry as an event. Its texts and mark are named by its kind and what happened; names in braces, such
// as {portal}, stand for what it tells. An entry of which neither is known is shown as it is.
func (v *visit) entry(from *journal.Entry) event {
	var b entryBody
	_ = json.Unmarshal([]byte(from.Body), &b) // an unreadable body is shown as it is
	kind, portal, state := string(from.Kind), b.Destination, ""
	what := map[journal.EntryKind]string{journal.OutcomeEntry: b.Outcome, journal.ReviewEntry: string(b.Decision),
		journal.DeliveryEntry: b.Delivery, journal.BulkEntry: string(b.Verb), journal.NoteEntry: string(b.Note),
		journal.GateEntry: string(b.Action), journal.RejectionEntry: b.Rejection,
		journal.TeachingEntry: string(b.Class)}[from.Kind]
	if b.Forgotten {
		what = "forgotten"
	}
	of := "event." + kind + "." + what
	if from.Kind == journal.DestinationEntry {
		portal = from.Subject.ID
		switch d, _ := journal.BodyOf[journal.DestinationBody](from); { // an unreadable body is empty
		case d.Command != nil:
			of, b.By, b.Reason = "event.order."+string(d.Command.Verb), d.Command.By, d.Command.Reason
		case d.State != nil:
			of, state = "event.portal", v.T("portal."+string(d.State.Phase))
		}
	}
	tells := strings.NewReplacer("{portal}", v.Portal(portal), "{state}", state, "{team}", v.team(b.Team),
		"{assignee}", cmp.Or(b.Assignee, v.T("assignee.nobody")), "{retry}", v.Number(b.RetryCount),
		"{lasted}", v.lasting(from.At.Sub(b.Since)))
	e := event{Record: from.Record, episode: b.Episode, Mark: cmp.Or(texts()[of]["mark"], markNote),
		At: v.At(from.At), at: from.At,
		Title: tells.Replace(v.Or(of, v.Or("event.kind."+kind, kind))), By: b.By, Words: b.Reason,
		Text: tells.Replace(v.Or(of+".text", v.Or("event."+kind+".text", "")))}
	if b.Run != "" {
		e.Run = runURL(b.Run)
	}
	fact := func(key, value string) {
		if value != "" {
			e.Facts = append(e.Facts, field{v.T(key), value})
		}
	}
	fact("event.fact.protocol", b.Accepted.Protocol)
	fact("event.fact.code", b.Rejection)
	fact("event.fact.message", b.Message)
	fact("assigned.follow_up", unless(b.FollowUpAt, v.Day(b.FollowUpAt)))
	switch {
	case what == "" && from.Kind != journal.DestinationEntry && (from.Kind != journal.ErasureEntry || b.By == ""):
		e.Facts = []field{{"body", string(from.Told())}}
	case from.Kind == journal.ReviewEntry:
		if fact("review.deadline", unless(b.Deadline, v.Clock(b.Deadline))); b.Fresh {
			e.Text = v.T("event.review.fresh")
		}
	case from.Kind == journal.GateEntry:
		if e.Words = ""; b.Action == journal.GateReleased {
			fact("event.gate.why", b.Reason)
		} else if b.GiveUp != "" {
			e.Text, e.Why = v.reason(b.GiveUp)+".", &why{Reason: b.GiveUp, Team: v.team(b.Team)}
		}
	}
	return e
}

// The marks of a timeline that the code names; texts.yaml has those of entries.
const (
	markRetry    = "retry"    // a failure after which a retry was scheduled
	markFinal    = "final"    // a failure that is given up
	markReview   = "review"   // a person sent it again
	markNext     = "next"     // the retry that lies ahead
	markHeld     = "held"     // it waits at a gate
	markDeadline = "deadline" // by when it must have been sent
	markNote     = "note"     // what has no place in the timeline
)

// deadline returns the deadline of a claim that is still to be sent; the zero time if there is none.
func deadline(story *journal.Story) time.Time {
	if len(story.Held) > 0 {
		return story.Held[0].Deadline
	}
	if n := len(story.DeadLetters); n > 0 && story.DeadLetters[n-1].State == journal.DeadLetterOpen {
		return story.DeadLetters[n-1].Deadline
	}
	return time.Time{}
}

// steps returns a story's timeline: the events of its chapters, the retry that lies ahead, and the deadline. A story of
// one event has none, unless it waits at a gate.
func (v *visit) steps(story *journal.Story, chapters []chapter) (steps []event) {
	add := func(mark, number string, at time.Time) {
		if mark != markNote && !at.IsZero() {
			steps = append(steps, event{Mark: mark, Number: number, At: v.moment(at, "at", v.Brief(at)), at: at})
		}
	}
	for _, c := range chapters {
		for i := range c.Events {
			add(c.Events[i].Mark, c.Events[i].Number, c.Events[i].at)
		}
	}
	if n := len(story.Episodes); n > 0 {
		e := &story.Episodes[n-1]
		if state := e.StateAt(v.Now); state == journal.Scheduled || state == journal.Reprocessing {
			add(markNext, "", e.NextRetryTime)
		}
	}
	if len(steps) == 0 || len(steps) == 1 && steps[0].Mark != markHeld {
		return nil
	}
	add(markDeadline, "", deadline(story))
	slices.SortStableFunc(steps, func(a, b event) int { return a.at.Compare(b.at) })
	for i := range steps[:len(steps)-1] {
		v.setWait(&steps[i], &steps[i+1])
	}
	return steps
}

// setWait sets how long the wait of s lasts, which next ends. A wait at a gate is counted until now at most.
func (v *visit) setWait(s, next *event) {
	until := next.at
	switch s.Held = s.Mark == markHeld; {
	case s.Held && until.After(v.Now):
		until = v.Now
	case s.Mark != markHeld && s.Mark != markRetry && s.Mark != markReview, next.Mark == markDeadline:
		return
	default:
		s.Ahead = next.Mark == markNext
	}
	if wait := until.Sub(s.at); wait >= time.Minute {
		s.Wait = v.span(wait)
	}
}
