package deadletter_test

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// TestStories plays testdata/*.txt: what becomes of dead letters that people decide on, one by one and in bulk.
func TestStories(t *testing.T) {
	golden.Stories(t, "testdata", func(t *testing.T, file string) { golden.Story(t, file, (&stage{t: t}).play) })
}

// stage is where a story is played, from `anew` on.
type stage struct {
	*testkit.Fixture
	t       *testing.T
	letters map[string]string // ids by their claims
	claims  int               // made by many
	command journal.BulkCommand
	token   string // of the last plan
	run     string // the last one
}

func (s *stage) play(command string) string {
	output := golden.Play(command, map[string]func(*golden.Arguments) (string, error){
		"anew": s.anew, "after": s.after, "engine": s.engine, "policies": s.policies, "fail": s.fail, "die": s.die, "many": s.many, "succeed": s.succeed,
		"show": s.show, "retry": s.decide(journal.BulkRetry), "discard": s.decide(journal.BulkDiscard), "accept": s.decide(journal.BulkAccept),
		"delivered": s.delivered, "later": s.later, "due": s.due, "assign": s.assign, "plan": s.plan, "start": s.start, "items": s.items, "steer": s.steer,
		"list": s.list, "runs": s.runs, "store": s.store,
	})
	return s.named(output)
}

// named has ids read as what they are of.
func (s *stage) named(text string) string {
	for claim, id := range s.letters {
		text = strings.ReplaceAll(text, id, "that of "+claim)
	}
	if s.run != "" {
		text = strings.ReplaceAll(text, s.run, "RUN")
	}
	return text
}

// anew begins at ten o'clock with an empty journal, and an engine that has answered for an hour.
func (s *stage) anew(*golden.Arguments) (string, error) {
	*s = stage{t: s.t, Fixture: testkit.New(s.t, testkit.At(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC))), letters: map[string]string{}}
	return "", nil
}

func (s *stage) after(a *golden.Arguments) (string, error) {
	s.Advance(s.duration(a.First))
	return "", nil
}

func (s *stage) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	testkit.Must(s.t, err)
	return d
}

// in is the instant so long after now that a command names; zero where it names none.
func (s *stage) in(a *golden.Arguments, name string) time.Time {
	if a.Named[name] == "" {
		return time.Time{}
	}
	return s.Now().Add(s.duration(a.Named[name]))
}

func (s *stage) engine(a *golden.Arguments) (string, error) {
	if s.SetEngineUp(time.Time{}); a.Words["up"] {
		s.SetEngineUp(s.Now())
	}
	return "", nil
}

func (s *stage) policies(a *golden.Arguments) (string, error) {
	if s.SetPolicies(decision.Policies{}); a.Words["back"] {
		s.SetPolicies(catalogue.Default().Policies)
	}
	return "", nil
}

func (s *stage) fail(a *golden.Arguments) (string, error) {
	s.Due = s.in(a, "due")
	attempt := s.Fail(cmp.Or(a.Named["policy"], tiss), a.First, cmp.Or(a.Named["error"], "DUPLICATE_CLAIM"), int(a.Number("retries")))
	if s.letters[a.First] = attempt.DeadLetter; attempt.DeadLetter == "" {
		delete(s.letters, a.First)
	}
	return "", nil
}

// die has a claim fail for good, and its process reach its review task, unless it is alone.
func (s *stage) die(a *golden.Arguments) (string, error) {
	if _, err := s.fail(a); err != nil || a.Words["alone"] {
		return "", err
	}
	s.Await(s.letters[a.First])
	return "", nil
}

// many has new claims die, of an error that names the password.
func (s *stage) many(a *golden.Arguments) (string, error) {
	n := 0
	_, err := fmt.Sscan(a.First, &n)
	for ; n > 0; n-- {
		s.claims++
		named := maps.Clone(a.Named)
		named["error"] = cmp.Or(named["error"], badPassword)
		_, _ = s.die(&golden.Arguments{First: fmt.Sprintf("CLM-%d-%d", s.claims, s.claims), Named: named, Words: a.Words})
	}
	return "", err
}

func (s *stage) succeed(a *golden.Arguments) (string, error) {
	s.Succeed(tiss, a.First)
	return "", nil
}

func (s *stage) show(a *golden.Arguments) (string, error) {
	return s.tell(s.Item(s.letters[a.First])), nil
}

// tell says how a dead letter is, and what its process is told next.
func (s *stage) tell(d deadletter.Item) string {
	said := fmt.Sprintf("%s, process %s", d.State, d.Process)
	if d.Delivery != "" {
		said += ", answer " + string(d.Delivery)
	}
	if d.Assigned.Assignee != "" {
		said += ", of " + d.Assigned.Assignee
	}
	if d.ForceNeeded() {
		said += ", takes force"
	}
	for _, answer := range s.Answers() {
		if answer.DeadLetter == d.ID {
			said += fmt.Sprintf("\n%s", answer.Variables)
		}
	}
	return said + "\n"
}

// decide decides as maria, for a reason that most stories do not look at.
func (s *stage) decide(action journal.BulkAction) func(*golden.Arguments) (string, error) {
	return func(a *golden.Arguments) (string, error) {
		id := s.letters[a.First]
		if a.Words["pasted"] { // as people do
			id = " " + strings.ToUpper(id) + "\n"
		}
		d, err := s.DeadLetters.Decide(s.t.Context(), deadletter.Command{ID: id, Action: action, Reason: reasoned(cmp.Or(a.Named["reason"], "portal de volta")), By: "maria",
			RetryOptions: journal.RetryOptions{Force: a.Words["force"], Fresh: a.Words["fresh"], When: a.Named["when"], Deadline: s.in(a, "deadline")}})
		if err != nil {
			return "", coded(err)
		}
		story, _, err := s.Store.Story(s.t.Context(), d.Subject)
		waits := ""
		if d.State == journal.DeadLetterReprocessing {
			waits = fmt.Sprintf(", waits %s, episode %d", d.Review.NextRetryTime.Sub(s.Now()), story.Episodes[len(story.Episodes)-1].Number)
		}
		if kept := s.Item(d.ID); fmt.Sprintf("%+v", kept) != fmt.Sprintf("%+v", d) {
			s.t.Errorf("given back is %+v, kept %+v", d, kept)
		}
		return "by " + d.Review.By + waits + ": " + s.tell(d), err
	}
}

// reasoned is a reason, of so many letters where it is a number.
func reasoned(text string) string {
	if n, err := strconv.Atoi(text); err == nil {
		return strings.Repeat("ã", n)
	}
	return text
}

// coded begins a refusal with its code.
func coded(err error) error {
	if code := journal.CodeOf(err); code != "" {
		return fmt.Errorf("%s: %w", code, err)
	}
	return err
}

func (s *stage) delivered(a *golden.Arguments) (string, error) {
	s.Deliver(a.Words["taken"])
	return "", nil
}

// later has a person decide what can be taken back for a while.
func (s *stage) later(a *golden.Arguments) (string, error) {
	verb := journal.RetryLater
	if a.Words["discard"] {
		verb = journal.DiscardLater
	}
	_, err := s.DeadLetters.Note(s.t.Context(), deadletter.Command{ID: s.letters[a.First], Reason: "paga em mãos", By: "ana"}, verb)
	return "", coded(err)
}

// due carries out what was decided so, and shows what is recorded of it.
func (s *stage) due(*golden.Arguments) (string, error) {
	before := s.Memory.End().Record
	err := s.DeadLetters.DecideDue(s.t.Context(), s.Store)
	said := ""
	for _, e := range s.Memory.Entries() {
		if e.Record > before {
			said += fmt.Sprintf("%s of %s: %s\n", e.Kind, e.Subject.ID, e.Told())
		}
	}
	return said, err
}

func (s *stage) assign(a *golden.Arguments) (string, error) {
	_, err := s.DeadLetters.Assign(s.t.Context(), s.letters[a.First], journal.Assignment{Assignee: a.Named["to"], Mark: journal.Mark{By: "maria"}})
	return "", err
}

// store is out of reach, fails so often, or is back.
func (s *stage) store(a *golden.Arguments) (string, error) {
	s.Memory.SetDown(a.Words["down"])
	s.Memory.Fail(int(a.Number("fails")), testkit.Fault{})
	if a.Words["up"] {
		s.Journal.Await(s.t.Context())
	}
	return "", nil
}

// list lists all dead letters in an order.
func (s *stage) list(a *golden.Arguments) (string, error) {
	items, _, err := s.DeadLetters.List(s.t.Context(), journal.DeadLetterFilter{Sort: a.First}, "", 9)
	said := ""
	for i := range items {
		said += fmt.Sprintf("%s, process %s\n", items[i].Subject.ID, items[i].Process)
	}
	return said, coded(err)
}

// runs lists bulk runs, two on a page.
func (s *stage) runs(*golden.Arguments) (string, error) {
	said := ""
	for cursor, more := "", true; more; more = cursor != "" {
		runs, next, err := s.DeadLetters.Runs(s.t.Context(), cursor, 2)
		if err != nil {
			return "", coded(err)
		}
		for _, r := range runs {
			said += fmt.Sprintf("%s of %d, %s\n", r.Action, r.Total, r.State)
		}
		if cursor = next; next != "" {
			said += "and more\n"
		}
	}
	return cmp.Or(said, "none\n"), nil
}

// commanded is a bulk command that names what differs from one before.
func (s *stage) commanded(c journal.BulkCommand, a *golden.Arguments) journal.BulkCommand {
	for _, action := range []journal.BulkAction{journal.BulkRetry, journal.BulkDiscard, journal.BulkAccept} {
		if a.Words[string(action)] {
			c.Action = action
		}
	}
	for name, value := range a.Named {
		switch name {
		case "team":
			c.Filter.Team = decision.Team(value)
		case "policy":
			c.Filter.Policy = value
		case "query":
			c.Filter.Query = value
		case "reasoned":
			c.Filter.Reason = decision.Reason(value)
		case "cause":
			c.Filter.Fingerprint = value
		case "assignee":
			c.Filter.Assignee = value
		case "since":
			c.Filter.Since = s.in(a, name)
		case "until":
			c.Filter.Until = s.in(a, name)
		case "reason":
			c.Reason = reasoned(value)
		case "by":
			c.By = value
		case "when":
			c.When = value
		case "pace":
			c.PerMinute = a.Number(name)
		case "action":
			c.Action = journal.BulkAction(value)
		}
	}
	c.Force, c.Fresh = c.Force || a.Words["force"], c.Fresh || a.Words["fresh"]
	return c
}

func (s *stage) plan(a *golden.Arguments) (string, error) {
	s.command = s.commanded(journal.BulkCommand{Reason: "senha corrigida", By: "maria"}, a)
	p, err := s.DeadLetters.Plan(s.t.Context(), s.command)
	if err != nil {
		return "", coded(err)
	}
	s.token = p.Token
	said := fmt.Sprintf("%d planned, %d ready in %s", p.Total, p.Ready, p.Takes)
	for _, t := range p.Tallies {
		said += fmt.Sprintf(", %d of %s for %s by %s", t.Count, t.Policy, t.Team, t.Reason)
	}
	for _, c := range p.Causes {
		said += fmt.Sprintf("\n%d of the cause %q", c.N, c.Cause.Pattern)
	}
	for _, r := range p.Refused {
		said += fmt.Sprintf("\n%d refused, %s: %s", r.Count, r.Code, r.Message)
	}
	if p.Total > 0 {
		said += fmt.Sprintf("\nfrom %s to %s", p.Oldest.Format(time.TimeOnly), p.Newest.Format(time.TimeOnly))
	}
	return said + "\n" + set(p.Command) + "\n", nil
}

// set is a value without the fields that are zero.
func set(v any) string {
	unset := regexp.MustCompile(`\w+:(0001-01-01 00:00:00 \+0000 UTC|0|false|map\[\]|\{ *\}|)([ }])`)
	said := fmt.Sprintf("%+v", v)
	for range 3 { // a struct of nothing is nothing
		said = unset.ReplaceAllString(said, "$2")
	}
	said = regexp.MustCompile(` +`).ReplaceAllString(said, " ")
	return strings.NewReplacer("{ ", "{", " }", "}").Replace(said)
}

// start starts a run by the token of the last plan, for which {} stands, and the command of that with what is named otherwise.
func (s *stage) start(a *golden.Arguments) (string, error) {
	token, given := a.Named["token"]
	if token = strings.ReplaceAll(token, "{}", s.token); !given {
		token = s.token
	}
	run, _, err := s.DeadLetters.Start(s.t.Context(), s.commanded(s.command, a), token)
	if err != nil {
		return "", coded(err)
	}
	if !deadletter.IsID(run.ID) || run.ID <= s.run {
		s.t.Errorf("the run %q comes behind %q", run.ID, s.run)
	}
	s.run = run.ID
	return set(run) + "\n", nil
}

func (s *stage) items(*golden.Arguments) (string, error) {
	items, err := s.DeadLetters.Items(s.t.Context(), s.run, "", 0, 9)
	said := ""
	for _, i := range items {
		said += fmt.Sprintf("%s %s\n", i.Subject.ID, i.Outcome)
	}
	return said, err
}

func (s *stage) steer(a *golden.Arguments) (string, error) {
	run, err := s.DeadLetters.Steer(s.t.Context(), s.run, journal.BulkVerb(a.First), "jose")
	if err != nil {
		return "", coded(err)
	}
	return fmt.Sprintf("%s by %s\n", run.State, run.ChangedBy), nil
}
