package deadletter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// DefaultPerMinute dead letters are decided in a minute where nobody says.
const DefaultPerMinute = 60

// each returns what is done with each of the dead letters.
func each(c *journal.BulkCommand) Command {
	return Command{Action: c.Action, Reason: c.Reason, By: c.By, Force: c.Force, Fresh: c.Fresh, When: c.When}
}

// Plan says what a command would do, before anything happens.
type Plan struct {
	// Token names what was planned: a run is started with it, and only as long as the dead letters it speaks of are still
	// the same. What dies later is not part of it.
	Token string
	// Command it was made for, with the pace and the moment filled in.
	Command journal.BulkCommand
	// Total dead letters that the filter lets through; Ready of them would be decided, Refused would not.
	Total, Ready int64
	Refused      []RefusedCount
	// Cents is what those that would be decided are worth.
	Cents int64
	// Oldest and Newest of all of them; the zero time where there are none.
	Oldest, Newest time.Time
	// Tallies of what would be decided, by policy, team and reason, the most first.
	Tallies []ReadyCount
	// Causes with the most of all of them, at most MostCauses; the sample of each says which they are.
	Causes []Group
	// Takes is how long the run lasts at its pace.
	Takes time.Duration
}

// MostCauses that a plan names.
const MostCauses = 10

// RefusedCount is why so many of a plan would not be decided.
type RefusedCount struct {
	Code Code `json:"code"`
	// Message is one English line: what it is, what to do.
	Message string `json:"message"`
	Count   int64  `json:"count"`
}

// ReadyCount is how many of a plan would be decided.
type ReadyCount struct {
	Policy string          `json:"policy"`
	Team   decision.Team   `json:"team"`
	Reason decision.Reason `json:"reason"`
	Count  int64           `json:"count"`
}

// interval between two decisions.
func interval(perMinute int64) time.Duration { return time.Minute / time.Duration(max(perMinute, 1)) }

// Plan says what c would do to what is there now, and changes nothing. One that finds nothing is no error.
func (s *Service) Plan(ctx context.Context, c journal.BulkCommand) (Plan, error) {
	c, err := checked(c)
	if err != nil {
		return Plan{}, err
	}
	plan, _, err := s.plan(ctx, c, 0)
	if err != nil {
		return Plan{}, err
	}
	groups, _, err := s.store.DeadLetterGroups(ctx, c.Filter, "", MostCauses)
	if err != nil {
		return Plan{}, fmt.Errorf("group dead letters: %w", err)
	}
	plan.Causes = s.attended(groups)
	return plan, nil
}

// seen is what a plan found: N open dead letters with a record of at most Through, and the sum of their
// records. A run that is started by it has the id Run, so a second start finds the first.
type seen struct {
	Through, N, Sum int64
	Run             string
	open            []Item
}

// plan says what would become of what c finds up to the record through; 0 is the newest.
func (s *Service) plan(ctx context.Context, c journal.BulkCommand, through int64) (p Plan, of seen, err error) {
	run, err := uuid.NewV7()
	if err != nil {
		return p, of, fmt.Errorf("name a bulk run: %w", err)
	}
	open, upTo, err := s.store.DeadLettersOpen(ctx, c.Filter, through, journal.MostBulkItems+1)
	if err != nil {
		return p, of, fmt.Errorf("read the open dead letters: %w", err)
	}
	if len(open) > journal.MostBulkItems {
		return p, of, refuse(InvalidFilter, "the filter lets more than %d dead letters through, which is the most of a bulk "+
			"run; narrow it, such as by a cause or a period", journal.MostBulkItems)
	}
	p, of = Plan{Command: c, Total: int64(len(open))}, seen{Through: upTo, N: int64(len(open)), Run: run.String(), open: open}
	refused, ready, command, policies := map[RefusedCount]int64{}, map[ReadyCount]int64{}, each(&c), s.policies()
	for i := range open {
		d := &open[i]
		of.Sum += d.Record
		if p.Oldest.IsZero() || d.CreatedAt.Before(p.Oldest) {
			p.Oldest = d.CreatedAt
		}
		if d.CreatedAt.After(p.Newest) {
			p.Newest = d.CreatedAt
		}
		s.judge(d)
		if why := unfit(d, &command, policies[d.Subject.Policy]); why != nil {
			refused[RefusedCount{Code: why.Code, Message: cmp.Or(ofMany[why.Code], why.Message)}]++
			continue
		}
		p.Ready, p.Cents = p.Ready+1, p.Cents+d.Cents
		ready[ReadyCount{Policy: d.Subject.Policy, Team: d.Team, Reason: d.Reason}]++
	}
	p.Refused = counted(refused, func(of *RefusedCount, n int64) { of.Count = n })
	p.Tallies = counted(ready, func(of *ReadyCount, n int64) { of.Count = n })
	p.Takes, p.Token = time.Duration(p.Ready)*interval(c.PerMinute), of.token(&c)
	return p, of, nil
}

// ofMany are refusals in words that do not speak of a single dead letter.
var ofMany = map[Code]string{
	MaxRetriesExceeded: "all their retries are made; set forceRetry for one more, and fresh with it for the whole ladder " +
		"again",
	DeadlineMissed: "they would be sent after their deadline; set forceRetry to send them all the same",
}

// counted lists what was counted, the most first, then in the order of what it is; with adds the count.
func counted[T comparable](counts map[T]int64, with func(of *T, n int64)) []T {
	all := slices.AppendSeq([]T{}, maps.Keys(counts))
	slices.SortFunc(all, func(a, b T) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	for i, of := range all {
		with(&all[i], counts[of])
	}
	return all
}

// planned names the command that a plan is of. The reason and the name are not part of it.
func planned(c *journal.BulkCommand) []byte {
	name, _ := json.Marshal([]any{ // of strings, numbers and truths, which cannot fail
		"bulk plan", c.Action, c.Filter, c.Force, c.Fresh, c.When, c.PerMinute,
	})
	return name
}

// token names what was seen for a command. It holds no secret: it is a check against what has changed, and no right.
func (s *seen) token(c *journal.BulkCommand) string {
	return newCursor(planned(c), s.Through, s.N, s.Sum, s.Run)
}

// readToken returns what was seen for c, or a *Refusal.
func readToken(token string, c *journal.BulkCommand) (s seen, err error) {
	if readCursor(planned(c), token, &s.Through, &s.N, &s.Sum, &s.Run) != nil {
		return s, refuse(InvalidPlan, "the token is not one that a plan of this very command gave (action, filter, forceRetry, "+
			"fresh, when and perMinute); plan first, and start with the plan's token")
	}
	return s, nil
}
