package journal_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/journal"
	"retry-worker/internal/redact"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// stage plays a scenario on a journal that keeps in memory. It belongs in a bubble of testing/synctest.
type stage struct {
	t       *testing.T
	memory  *testkit.Memory
	journal *journal.Journal
	now     time.Time
	last    journal.Recorded            // what the last analysis came to
	asked   map[string]journal.Recorded // what each claim's last analysis came to
	shown   int                         // transactions so far, at `marks`
	letters map[string]string           // short names of dead letters by id
	stories map[string]journal.Story    // as they were last shown

	policies    map[string]*decision.Policy
	claims, job int64 // made by many
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t}
	_, _ = s.anew(nil)
	return s
}

// anew begins with an empty journal, on the first day.
func (s *stage) anew(*arguments) (string, error) {
	*s = stage{
		t: s.t, memory: testkit.NewMemory(), now: time.Date(2025, 1, 12, 10, 0, 0, 0, time.UTC),
		asked: map[string]journal.Recorded{}, letters: map[string]string{}, stories: map[string]journal.Story{}, policies: policies, job: 1000,
	}
	s.journal = testkit.StartJournal(s.t, s.memory, func() time.Time { return s.now })
	return "", nil
}

// policies of the scenarios: the specification's with one rule that presumes, and a second one that decides alike for ids of its own.
var policies = func() map[string]*decision.Policy {
	tiss, other := decisiontest.TISSSubmission(), decisiontest.TISSSubmission()
	other.Name = "other-policy"
	tiss.Rules = decisiontest.Rules(append(tiss.Rules.Rules(), classify.Rule{
		Name: "patient", Class: decision.Permanent, Rank: classify.Refusal, Reason: "INVALID_PATIENT_DATA", Team: "cadastro",
		Phrases: []string{"cpf invalido"},
	})...)
	return map[string]*decision.Policy{tiss.Name: tiss, other.Name: other}
}()

type arguments = golden.Arguments

// play runs a command and tells what came of it, every line ended; nothing where there is nothing to tell.
func (s *stage) play(command string) string {
	return golden.Play(command, map[string]func(*arguments) (string, error){
		"at": s.at, "after": s.after, "analyze": s.analyze, "answered": s.answered, "outcome": s.outcome,
		"review": coded(s.review), "seen": coded(s.seen), "delivered": s.delivered, "answers": s.answers, "letters": s.list, "history": s.history,
		"pending": s.pending, "fault": s.fault, "audit": s.audit, "anew": s.anew, "policy": s.policy, "hold": s.hold,
		"depart": s.depart, "many": s.many, "figures": s.figures, "causes": s.causes,
		"bulk": coded(s.bulk), "run": s.run, "reject": s.reject, "purge": s.purge, "mark": s.mark, "marks": s.marks,
	})
}

// coded has a refusal begin with its code.
func coded(play func(*arguments) (string, error)) func(*arguments) (string, error) {
	return func(a *arguments) (string, error) {
		output, err := play(a)
		if code := journal.CodeOf(err); code != "" {
			err = fmt.Errorf("%s: %w", code, err)
		}
		return output, err
	}
}

func (s *stage) subject(a *arguments) journal.Subject {
	subject := journal.Subject{Tenant: a.Named["tenant"], Policy: a.Named["policy"], ID: a.First}
	if subject.Tenant == "" {
		subject.Tenant = "<default>"
	}
	if subject.Policy == "" {
		subject.Policy = decision.DefaultPolicy
	}
	return subject
}

// instant reads a time of day, of this day unless a date stands before it.
func (s *stage) instant(text string) (time.Time, error) {
	if !strings.Contains(text, "T") {
		text = s.now.Format(time.DateOnly) + "T" + text
	}
	return time.Parse("2006-01-02T15:04:05.999", text)
}

func (s *stage) at(a *arguments) (string, error) {
	now, err := s.instant(a.First)
	if synctest.Wait(); err == nil {
		s.now = now
	}
	return "", err
}

func (s *stage) after(a *arguments) (string, error) {
	d, err := time.ParseDuration(a.First)
	synctest.Wait()
	s.now = s.now.Add(d)
	return "it is " + clock(s.now) + "\n", err
}

// analyze does what the worker does: read, refuse or have it decided.
func (s *stage) analyze(a *arguments) (string, error) {
	subject := s.subject(a)
	p := s.policies[subject.Policy]
	v := decision.Variables{ID: decision.Text(a.First), RetryCount: decision.Value(a.Named["count"]), Destination: decision.Text(a.Named["portal"])}
	if text, ok := a.Named["error"]; ok {
		v.Error = decision.Text(text)
	}
	if last := a.Named["lastSubmissionTime"]; last != "" {
		v.LastSubmissionTime = decision.Text(last)
	}
	f, rejection := p.Read(v)
	element := a.Number("element")
	if element == 0 {
		element = a.Number("job") * 10
	}
	if rejection != nil {
		err := s.journal.Reject(s.t.Context(), &journal.RejectedJob{Subject: subject, Rule: decision.RNBIL005,
			JobKey: a.Number("job"), ProcessInstanceKey: a.Number("instance"), Rejection: rejection})
		return "rejected " + journal.RejectionMessage(rejection) + "\n", err
	}
	var err error
	if f.Deadline, f.Context, err = s.brings(a); err != nil {
		return "", err
	}
	analysis := &journal.Analysis{
		Subject: subject, JobKey: a.Number("job"), ElementInstanceKey: element, ProcessInstanceKey: a.Number("instance"),
		Rule: decision.RNBIL005, Policy: p, Failure: &f, Error: redact.Text(f.Error), ReceivedAt: s.now.Add(-3 * time.Millisecond),
		LockedUntil: a.Number("until") * 1000,
	}
	r, err := s.journal.Analyze(s.t.Context(), analysis)
	if err != nil {
		return "", err
	}
	s.last, s.asked[a.First] = r, r
	changes := s.changes(subject)
	return s.tellRecorded(&r) + changes, nil
}

// answered marks the last analysis, and lets the mark be written.
func (s *stage) answered(*arguments) (string, error) {
	s.journal.Answered(&s.last)
	time.Sleep(2 * time.Second)
	if a := s.last.Attempt; a != nil && s.memory.Answered(a.Record) {
		return "record " + strconv.FormatInt(a.Record, 10) + " is marked\n", nil
	}
	return "nothing is marked\n", nil
}

// mark marks the last analysis of each named claim, so many times.
func (s *stage) mark(a *arguments) (string, error) {
	for range max(a.Number("times"), 1) {
		for _, id := range strings.Split(a.First, ",") {
			r := s.asked[id]
			s.journal.Answered(&r)
		}
	}
	return "", nil
}

// marks shows, after so long, which records are marked, and what was written for that since it last showed so.
func (s *stage) marks(a *arguments) (string, error) {
	if in := a.Named["after"]; in != "" {
		d, err := time.ParseDuration(in)
		if time.Sleep(d); err != nil {
			return "", err
		}
	}
	synctest.Wait()
	said, all := "", s.memory.Transactions()
	for n := int64(1); n <= s.memory.End().Record; n++ {
		if s.memory.Answered(n) {
			said += fmt.Sprintf(" %d", n)
		}
	}
	said += ";"
	for _, tx := range all[s.shown:] {
		said += fmt.Sprintf(" %d runs beside %d subjects", tx.Answered, len(tx.Subjects))
	}
	s.shown = len(all)
	return "marked" + said + "\n", nil
}

func (s *stage) outcome(a *arguments) (string, error) {
	o := &journal.Outcome{Subject: s.subject(a), Success: a.Words["success"], JobKey: a.Number("job"),
		ElementInstanceKey: a.Number("job") * 10, ProcessInstanceKey: a.Number("instance"), LockedUntil: a.Number("until") * 1000}
	if at := a.Named["at"]; at != "" {
		var err error
		if o.At, err = s.instant(at); err != nil {
			return "", err
		}
	}
	if a.Words["accepted"] {
		o.Accepted = &journal.Acceptance{Protocol: a.Named["protocol"]}
	}
	c, err := s.journal.Conclude(s.t.Context(), o)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("changed %t\n", c.Changed) + s.changes(o.Subject), nil
}

func (s *stage) review(a *arguments) (string, error) {
	r := &journal.Review{Subject: s.subject(a), Discard: a.Words["discard"], RetryOptions: journal.RetryOptions{Force: a.Words["force"], Fresh: a.Words["fresh"]},
		Reason: a.Named["reason"], By: a.Named["by"], Run: a.Named["run"], DeadLetter: s.letterID(a), Policy: s.policies[decision.DefaultPolicy]}
	if a.Words["accepted"] {
		r.Accepted = &journal.Acceptance{Protocol: a.Named["protocol"]}
	}
	if delay := a.Named["delay"]; delay != "" {
		var err error
		if r.Delay, err = time.ParseDuration(delay); err != nil {
			return "", err
		}
	}
	if _, err := s.journal.Review(s.t.Context(), r); err != nil {
		return "", err
	}
	answer := "let go\n"
	if r.Accepted != nil {
		answer = "closed\n"
	} else if !r.Discard {
		answer = fmt.Sprintf("goes on with retryCount %d\n", retries(s.memory, r.Subject))
	}
	return answer + s.changes(r.Subject), nil
}

// fault makes the next transaction fail: unavailable, or ambiguous before or after it was done.
func (s *stage) fault(a *arguments) (string, error) {
	f := testkit.Fault{After: a.Words["after"]}
	if a.Words["ambiguous"] {
		f.Kind = journal.Ambiguous
	}
	s.memory.Fail(max(1, int(a.Number("times"))), f)
	return "", nil
}

// reject records a job that names nobody.
func (s *stage) reject(*arguments) (string, error) {
	return "", s.journal.Reject(s.t.Context(), &journal.RejectedJob{Rejection: &decision.Rejection{Code: decision.InvalidClaimID}})
}

// purge lets go of the records that are older than that, and shows what is recorded of it.
func (s *stage) purge(a *arguments) (string, error) {
	older, err := time.ParseDuration(a.Named["older"])
	if err != nil {
		return "", err
	}
	before := s.memory.End().Record
	n, err := s.journal.Purge(s.t.Context(), s.memory, older, a.Words["confirmed"])
	told := fmt.Sprintf("%d purged\n", n)
	for _, e := range s.memory.Entries() {
		if e.Record > before {
			told += fmt.Sprintf("%s: %s\n", e.Kind, e.Told())
		}
	}
	return told, err
}
