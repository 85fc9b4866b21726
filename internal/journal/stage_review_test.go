package journal_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// letterID is the id of the dead letter that a command names; one that there is none of where it names none.
func (s *stage) letterID(a *arguments) string {
	for id, short := range s.letters {
		if short == a.Named["letter"] {
			return id
		}
	}
	return "00000000-0000-0000-0000-000000000000"
}

// seen plays the review job's handler.
func (s *stage) seen(a *arguments) (string, error) {
	of := s.subject(a)
	d, err := s.journal.ReviewSeen(s.t.Context(), &journal.ReviewJob{Subject: of, DeadLetter: s.letterID(a), JobKey: a.Number("job"), Accepts: a.Words["accepts"]})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("the dead letter is %s\n", d.State) + s.changes(of), nil
}

// waiting are the answers on their way to processes of a subject.
func (s *stage) waiting(of journal.Subject) []journal.Message {
	var all []journal.Message
	for _, m := range s.memory.Outbox() {
		if m.Queue == journal.ReviewQueue && m.Key == strings.Join([]string{of.Tenant, of.Policy, of.ID}, "/") {
			all = append(all, m)
		}
	}
	return all
}

// delivered plays the deliverer: the engine takes the first answer, or knows no such job.
func (s *stage) delivered(a *arguments) (string, error) {
	of := s.subject(a)
	all := s.waiting(of)
	if len(all) == 0 {
		return "", errors.New("no answer is on its way")
	}
	answer, err := journal.ReadAnswer(&all[0])
	if err != nil {
		return "", err
	}
	for range max(a.Number("times"), 1) {
		if err := s.journal.Delivered(s.t.Context(), answer, a.Words["taken"]); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("answer to job %d: %s\n", answer.JobKey, answer.Decision) + s.changes(of), nil
}

// answers shows what is on its way.
func (s *stage) answers(a *arguments) (string, error) {
	all := s.waiting(s.subject(a))
	if len(all) == 0 {
		return "none\n", nil
	}
	text := ""
	for i := range all {
		answer, err := journal.ReadAnswer(&all[i])
		if err != nil {
			return "", err
		}
		text += fmt.Sprintf("job %d about %s: %s\n", answer.JobKey, s.letter(answer.DeadLetter), answer.Variables)
	}
	return text, nil
}

// list shows what a page of dead letters holds, and the counts.
func (s *stage) list(a *arguments) (string, error) {
	f := journal.DeadLetterFilter{State: a.Named["state"], Policy: a.Named["policy"], Query: a.Named["query"],
		Sort: deadletter.Newest}
	items, _, err := s.memory.DeadLetterPage(s.t.Context(), f, "", 20)
	if err != nil {
		return "", err
	}
	text := ""
	for i := range items {
		d := &items[i]
		text += fmt.Sprintf("%s %s of %s: %s since %s, first failure %s, error %q\n", s.letter(d.ID), d.State, d.Subject.ID, d.Reason,
			clock(d.CreatedAt), clock(d.FirstFailure), d.Error)
	}
	counts, err := s.memory.DeadLetterCounts(s.t.Context(), journal.DeadLetterFilter{State: deadletter.AllStates})
	sort := func(a, b deadletter.Count) int {
		return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(a.Team, b.Team), cmp.Compare(a.Reason, b.Reason))
	}
	slices.SortFunc(counts, sort)
	for i, c := range counts {
		if i+1 < len(counts) && sort(c, counts[i+1]) == 0 { // of another cause
			counts[i+1].Add(&c)
			continue
		}
		if c.State != journal.DeadLetterOpen {
			c.Oldest = time.Time{}
		}
		text += fmt.Sprintf("%d %s %s for %q, the oldest of %s\n", c.N, c.State, c.Reason, c.Team, clock(c.Oldest))
	}
	return text, err
}
