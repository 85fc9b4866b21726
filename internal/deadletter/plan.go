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

// DefaultPerMinute is a bulk run's pace if nobody says another.
const DefaultPerMinute = 60

// each returns the command for each dead letter of c.
func each(c *journal.BulkCommand) Command {
	return Command{Action: c.Action, Reason: c.Reason, By: c.By, Force: c.Force, Fresh: c.Fresh, When: c.When}
}

// Plan says what a command would do, before anything happens.
type Plan struct {
	// Token is what a run is started with, as long as the planned dead letters are still the same. Later ones are not
	// part of it.
	Token string
	// Command is the planned one, with its defaults.
	Command journal.BulkCommand
	// Total is how many dead letters the filter matches. Ready of them would be decided, those in Refused would not.
	Total, Ready int64
	Refused      []RefusedCount
	// Cents is the total amount of those that would be decided.
	Cents int64
	// Oldest and Newest are when the first and the last of all of them were created; zero if there are none.
	Oldest, Newest time.Time
	// Tallies counts what would be decided by policy, team and reason, the most first.
	Tallies []ReadyCount
	// Causes has the most frequent causes of all of them, at most MostCauses.
	Causes []Group
	// Takes is how long the run lasts at its pace.
	Takes time.Duration
}

// MostCauses bounds the causes that a plan names.
const MostCauses = 10

// RefusedCount counts the dead letters of a plan that would be refused for one reason.
type RefusedCount struct {
	Code journal.Code `json:"code"`
	// Message is one English line: what it is, what to do.
	Message string `json:"message"`
	Count   int64  `json:"count"`
}

// ReadyCount counts the dead letters of a plan that would be decided.
type ReadyCount struct {
	Policy string          `json:"policy"`
	Team   decision.Team   `json:"team"`
	Reason decision.Reason `json:"reason"`
	Count  int64           `json:"count"`
}

// interval returns the time between two decisions.
func interval(perMinute int64) time.Duration { return time.Minute / time.Duration(max(perMinute, 1)) }

// Plan returns what c would do now, and changes nothing. A plan that finds no dead letters is no error.
func (s *Service) Plan(ctx context.Context, c journal.BulkCommand) (Plan, error) {
	c, err := checked(c)
	if err != nil {
		return Plan{}, err
	}
	plan, _, err := s.plan(ctx, c, 0)
	if err != nil {
		return Plan{}, err
	}
	plan.Causes, _, err = s.Groups(ctx, c.Filter, "", MostCauses)
	return plan, err
}

// seen is what a plan found: N open dead letters with a record of at most Through, and the sum of their records. The
// run that it starts has the id Run, so that a second start finds the first.
type seen struct {
	Through, N, Sum int64
	Run             string
	open            []Item
}

// plan returns what c would do to the dead letters that it finds up to the record through; 0 is the newest.
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
		return p, of, journal.Refuse(InvalidFilter, "the filter lets more than %d dead letters through, which is the most of a bulk "+
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
var ofMany = map[journal.Code]string{
	journal.MaxRetriesExceeded: "all their retries are made; set forceRetry for one more, and fresh with it for the whole ladder " +
		"again",
	journal.DeadlineMissed: "they would be sent after their deadline; set forceRetry to send them all the same",
}

// counted returns the keys of counts, the most frequent first, then in printed order. with sets a key's count in it.
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

// planned returns the name of a command for its tokens, without the reason and the person's name.
func planned(c *journal.BulkCommand) []byte {
	name, _ := json.Marshal([]any{ // strings, numbers and booleans cannot fail
		"bulk plan", c.Action, c.Filter, c.Force, c.Fresh, c.When, c.PerMinute,
	})
	return name
}

// token returns the token of what was seen for c. It is no secret and gives no right: it only shows what has changed.
func (s *seen) token(c *journal.BulkCommand) string {
	return newCursor(planned(c), s.Through, s.N, s.Sum, s.Run)
}

// readToken returns what was seen for c, or a *journal.Refusal.
func readToken(token string, c *journal.BulkCommand) (s seen, err error) {
	if readCursor(planned(c), token, &s.Through, &s.N, &s.Sum, &s.Run) != nil {
		return s, journal.Refuse(InvalidPlan, "the token is not one that a plan of this very command gave (action, filter, forceRetry, "+
			"fresh, when and perMinute); plan first, and start with the plan's token")
	}
	return s, nil
}
