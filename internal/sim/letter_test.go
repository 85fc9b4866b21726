package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// checkSubject: one episode and one dead letter of a claim are open at most, the dead letter where the episode is dead;
// the dead letters that are shown are what the claim's records come to.
func (s *sim) checkSubject(of journal.Subject) {
	told, known, err := s.memory.Story(context.Background(), of)
	if err != nil || !known {
		return
	}
	var open []journal.State
	retries, letters, underWay, want := int64(0), 0, 0, s.tally.episodes[of.ID]
	for i := range told.Episodes {
		e := &told.Episodes[i]
		if e.State.Open() {
			open, retries = append(open, e.State), e.Retries
		}
		if i > 0 && e.Number != told.Episodes[i-1].Number+1 {
			s.fail("%s has an episode %d behind %d", of.ID, e.Number, told.Episodes[i-1].Number)
		}
		if want != nil && e.Number == want.number && (e.State != want.state || e.ProcessInstanceKey != want.process ||
			!e.OpenedAt.Equal(want.opened) || !e.FirstFailure.Equal(want.first)) {
			s.fail("%s has the episode %+v, and is to have %+v", of.ID, *e, *want)
		}
	}
	for i := range told.DeadLetters {
		d := &told.DeadLetters[i]
		if d.State == journal.DeadLetterOpen {
			if letters++; d.RetryCount != retries {
				s.fail("%s has made %d retries, and its dead letter %d", of.ID, retries, d.RetryCount)
			}
		}
		if d.State == journal.DeadLetterReprocessing {
			if a := s.last[of.ID]; a != nil && a.Revision == 0 && d.Delivery == journal.DeliveryPending && a.ProcessInstanceKey == d.ProcessInstanceKey && a.Record > s.letters[d.ID].Answer {
				s.fail("%s has failed again since it was sent again, and its decision is said to be on its way", of.ID)
			}
			if underWay++; d.Delivery == journal.DeliveryTaken && s.went[d.ID] == nil {
				s.fail("the decision on %s of %s is said to be taken, and no process did", d.ID, of.ID)
			}
		}
		shown, found, _ := s.memory.DeadLetter(context.Background(), d.ID)
		if is := fmt.Sprint(d.State, d.Delivery, d.RetryCount); found && fmt.Sprint(shown.State, shown.Delivery, shown.RetryCount) != is {
			s.fail("the dead letter %s of %s is shown as %s %s, and is %s", d.ID, of.ID, shown.State, shown.Delivery, is)
		}
		want := s.letters[d.ID]
		if d.State != journal.DeadLetterOpen {
			want.Looking, want.Asked, want.Discarding = journal.Mark{}, journal.Mark{}, journal.Mark{}
		}
		if lasting(d) != lasting(&want) && !strings.HasPrefix(of.ID, "erased-") {
			s.fail("the dead letter of %s is %s, and is to be %s", of.ID, lasting(d), lasting(&want))
		}
	}
	if dead := slices.Contains(open, journal.Dead); len(open) > 1 || letters+underWay > 1 || dead != (letters == 1) {
		s.fail("%s has the open episodes %v, %d open dead letters and %d that are sent again", of.ID, open, letters, underWay)
	}
}

// openLetters are the dead letters that wait for people.
func (s *sim) openLetters() []deadletter.Item {
	items, _, err := s.memory.DeadLetterPage(context.Background(), journal.DeadLetterFilter{}, "", 200)
	if err != nil {
		s.fail("dead letters cannot be read: %v", err)
	}
	return items
}

// letter is a dead letter as it is shown; its zero value where there is none.
func (s *sim) letter(id string) deadletter.Item {
	d, _, _ := s.memory.DeadLetter(context.Background(), id)
	return d
}

// lasting returns what of a dead letter is as it was born, or as people left it.
func lasting(d *journal.DeadLetter) string {
	l := *d
	l.State, l.ChangedAt, l.Delivery, l.Answer, l.ReviewJobKey = "", time.Time{}, "", 0, 0
	text, _ := json.Marshal(l)
	return string(text)
}

// born notes a dead letter that is born with a record of a claim.
func (s *sim) born(claim string, record int64, at time.Time, d *journal.DeadLetter) {
	if d.Record, d.CreatedAt = record, at; len(d.Context) > 0 {
		d.Cents = worthOf(claim)
	}
	s.letters[d.ID] = *d
}

// givesUp notes the dead letter of a claim whose process gave it up by itself: it has what is known of the last failure.
func (s *sim) givesUp(claim, id string, by decision.Team, e *journal.Entry) {
	d := s.letter(id).DeadLetter // what the episode knows
	d.Outcome, d.Reason, d.Team, d.Review, d.Run = decision.MaxRetriesExceeded, decision.ReasonReported, team, journal.ReviewNote{}, ""
	if a := s.last[claim]; a != nil {
		d.RetryCount, d.MaxRetries, d.Fingerprint, d.Deadline = s.tally.episodes[claim].retries, a.MaxRetries, a.Fingerprint, a.Deadline
		told, _, _ := s.memory.Story(context.Background(), subjectOf(claim))
		for _, before := range told.DeadLetters { // with a new one, perhaps
			if all := s.reviews[before.ID]; len(all) > 0 && all[len(all)-1].record > a.Record {
				d.Deadline = cmp.Or(all[len(all)-1].SubmissionDeadline, d.Deadline)
			}
		}
	}
	if s.born(claim, e.Record, e.At, &d); by != team {
		s.fail("%s is given up by its process, and is for %q", claim, by)
	}
}

// tally is what the journal's sums are to be (R19): what is recorded, counted anew.
type tally struct {
	sums     map[journal.FigureName]int64
	episodes map[string]*episode // the last of each claim
}

type episode struct {
	number, retries int64
	presumed        int           // errors that look permanent and were retried
	state           journal.State // what became of it
	died            bool          // once, whatever people made of it since
	failed, retried bool          // since it began; before it failed first, too
	first           time.Time     // its first failure, as it was recorded last, or when it began without one
	opened          time.Time     // when it was recorded that it began
	process         int64         // the instance that asked last
}

// of returns the episode of a claim; it ends the one before.
func (t *tally) of(claim string, number int64, ends journal.State, at time.Time) *episode {
	e := t.episodes[claim]
	if e == nil || e.number != number {
		if e != nil && ends != "" && !e.died {
			t.sums[journal.FigureClosed]++
		}
		e = &episode{number: number, opened: at}
		t.episodes[claim] = e
	}
	return e
}

// dies counts that an episode is given up, or ends.
func (t *tally) dies(e *episode, byLimit bool) {
	if !e.died {
		t.sums[journal.FigureClosed]++
		if byLimit {
			t.sums[journal.FigureExhausted]++
		}
	}
	if e.died = true; byLimit && e.retried {
		t.sums[journal.FigureExhaustedRetried]++
	}
}

func (t *tally) attempt(a *journal.Attempt, open bool) {
	if last := t.episodes[a.Decision.SubjectID]; a.Revision > 0 && (!open || last != nil && last.number > a.Episode) {
		return // the episode went on, or another began
	}
	e := t.of(a.Decision.SubjectID, a.Episode, a.Ends, a.At)
	e.retried = e.retried || a.ShouldRetry() || !e.failed && a.AnalysedCount > 0
	e.failed = true
	if a.Revision == 0 {
		e.first, e.process = a.FirstFailure, a.ProcessInstanceKey
		t.sums[journal.FigureDecisions]++
		if a.ErrorClassification == decision.Permanent {
			t.sums[journal.FigurePermanent]++
		}
		if a.ShouldRetry() {
			if strings.HasPrefix(a.Error, presumedError) {
				e.presumed++
			}
			t.sums[journal.FigureScheduled]++
			t.sums[journal.FigureBackoff] += a.Backoff.Delay.Milliseconds()
		}
	}
	if a.Revision == 0 || !a.ShouldRetry() { // else it may be of an earlier one
		e.retries = a.RetryCount
	}
	switch {
	case !a.ShouldRetry() && e.state != journal.Dead:
		t.dies(e, a.Outcome == decision.MaxRetriesExceeded)
		e.state = journal.Dead
	case a.Revision == 0 && a.ShouldRetry():
		e.state = journal.Scheduled
	}
}

func (t *tally) gate(claim string, b *journal.GateBody, at time.Time) {
	switch b.Action {
	case journal.GateHeld:
		t.sums[journal.FigureHeld]++
	case journal.GateGivenUp:
		e := t.of(claim, b.Episode, "", at)
		if b.Opens {
			e.first = b.Since
		}
		e.retries, e.state, e.process = b.Retries, journal.Dead, b.ProcessInstanceKey
		t.dies(e, true)
	}
}

func (t *tally) entry(e *journal.Entry) {
	var b struct {
		Episode, RetryCount int64
		State               journal.State
		Decision            journal.DeadLetterState
		Fresh               bool
		At                  time.Time
	}
	_ = json.Unmarshal([]byte(e.Body), &b)
	switch is := t.episodes[e.Subject.ID]; {
	case is == nil:
	case e.Kind == journal.OutcomeEntry:
		is.state = b.State
		if t.dies(is, false); b.State == journal.Recovered && is.retried {
			t.sums[journal.FigureRecoveredRetried]++
		}
	case e.Kind == journal.ReviewEntry && b.Decision == journal.DeadLetterDiscarded:
		is.state = journal.Discarded
	case e.Kind == journal.ReviewEntry:
		if is.state, is.retries = journal.Reprocessing, b.RetryCount; b.Fresh {
			*is = episode{number: is.number + 1, state: is.state, retries: is.retries, died: is.died, first: e.At, opened: e.At, process: is.process}
		}
	}
}

// checkFigures: the sums are what was recorded.
func (s *sim) checkFigures() {
	all, err := s.memory.Figures(context.Background(), 0)
	sums := map[journal.FigureName]int64{}
	for _, f := range all {
		sums[f.Name] += f.Value
	}
	for name, want := range s.tally.sums {
		if err != nil || sums[name] != want {
			s.fail("the sum %s is %d, and is to be %d", name, sums[name], want)
		}
	}
}
