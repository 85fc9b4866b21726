package deadletter

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// DefaultPerMinute dead letters are decided in a minute where nobody says.
const DefaultPerMinute = 60

// BulkCommand is what is to be done with all dead letters of a filter.
type BulkCommand struct {
	Action journal.BulkAction
	// Filter chooses among the open ones; its State is not looked at.
	Filter journal.DeadLetterFilter
	// Reason and By are the person's words, 1 to MaxReason characters, and name. A plan needs neither.
	Reason, By string
	// Force, Fresh and When are those of each retry (Command).
	Force, Fresh bool
	When         When
	// PerMinute is the pace, 1 to journal.MaxPerMinute; 0 is DefaultPerMinute.
	PerMinute int64
}

// Plan says what a command would do, before anything happens.
type Plan struct {
	// Token names what was planned: a run is started with it, and only as long as the dead letters it speaks of are still
	// the same. What dies later is not part of it.
	Token string
	// Command it was made for, with the pace and the moment filled in.
	Command BulkCommand
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
func (s *Service) Plan(ctx context.Context, c BulkCommand) (Plan, error) {
	c, err := c.checked()
	if err != nil {
		return Plan{}, err
	}
	p, err := s.plan(ctx, c, 0)
	if err != nil {
		return Plan{}, err
	}
	plan := p.plan()
	groups, _, err := s.store.DeadLetterGroups(ctx, c.Filter, "", MostCauses)
	if err != nil {
		return Plan{}, fmt.Errorf("group dead letters: %w", err)
	}
	plan.Causes = s.attended(groups)
	return plan, nil
}

// plan sums up what c finds up to the record through; 0 is the newest.
func (s *Service) plan(ctx context.Context, c BulkCommand, through int64) (*planner, error) {
	run, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("name a bulk run: %w", err)
	}
	now, up := s.now(), s.engineUp()
	tallies, upTo, err := s.store.DeadLetterTallies(ctx, c.Filter, through, now)
	if err != nil {
		return nil, fmt.Errorf("sum up dead letters: %w", err)
	}
	p := &planner{Plan: Plan{Command: c, Refused: []RefusedCount{}, Tallies: []ReadyCount{}}, policies: s.policies(),
		early:   up.IsZero() || now.Sub(up) < ExpectedFor,
		refused: map[RefusedCount]int64{}, ready: map[ReadyCount]int64{}, seen: seen{Through: upTo, Run: run}}
	for i := range tallies {
		p.add(&tallies[i])
	}
	if p.Total > journal.MostBulkItems {
		return nil, refuse(InvalidFilter, "the filter lets %d dead letters through, expected at most %d in a bulk run; narrow it, such "+
			"as by a cause or a period", p.Total, journal.MostBulkItems)
	}
	return p, nil
}

// planner sorts what a command would find into what would be decided and what would not.
type planner struct {
	Plan
	// policies in force; early tells that a process which has not come yet may still.
	policies decision.Policies
	early    bool

	refused map[RefusedCount]int64
	ready   map[ReadyCount]int64
	seen    seen
}

// add sorts some that are alike.
func (p *planner) add(t *Tally) {
	p.Total += t.N
	p.seen.N, p.seen.Sum = p.Total, (p.seen.Sum+t.Sum)&math.MaxInt64
	if p.Oldest.IsZero() || t.Oldest.Before(p.Oldest) {
		p.Oldest = t.Oldest
	}
	if t.Newest.After(p.Newest) {
		p.Newest = t.Newest
	}
	if why := p.refusal(t); why != nil {
		p.refused[RefusedCount{Code: why.Code, Message: why.Message}] += t.N
		return
	}
	p.Ready, p.Cents = p.Ready+t.N, p.Cents+t.Cents
	p.ready[ReadyCount{Policy: t.Policy, Team: t.Team, Reason: t.Reason}] += t.N
}

// refusal is why they would not be decided; nil where they would. It follows Service.
func (p *planner) refusal(t *Tally) *Refusal {
	c := &p.Command
	switch {
	case c.Action == journal.BulkDiscard:
		return nil
	case t.Waits && !t.Gone:
	case !t.Gone && (p.early || t.Recent):
		return refuse(InvalidRetryState,
			"the process has not come to its review task yet, so nothing would carry a retry out; plan again in a minute")
	default:
		return refuse(InvalidRetryState,
			"no process waits for them, so nothing would carry a retry out; start the processes again, or discard them")
	}
	switch {
	case t.AtLimit && !c.Force:
		return refuse(MaxRetriesExceeded,
			"all their retries are made; set forceRetry for one more, and fresh with it for the whole ladder again")
	case t.Late && !c.Force:
		return refuse(DeadlineMissed, "they would be sent after their deadline; set forceRetry to send them all the same")
	case c.When == Backoff && p.policies[t.Policy] == nil:
		return policyGone(t.Policy)
	}
	return nil
}

// plan is what all that was added comes to.
func (p *planner) plan() Plan {
	for r, n := range p.refused {
		r.Count = n
		p.Refused = append(p.Refused, r)
	}
	slices.SortFunc(p.Refused, func(a, b RefusedCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	for t, n := range p.ready {
		t.Count = n
		p.Tallies = append(p.Tallies, t)
	}
	slices.SortFunc(p.Tallies, func(a, b ReadyCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Policy, b.Policy),
			cmp.Compare(a.Team, b.Team), cmp.Compare(a.Reason, b.Reason))
	})
	p.Takes = time.Duration(p.Ready) * interval(p.Command.PerMinute)
	p.Token = p.seen.token(&p.Command)
	return p.Plan
}

// Tally is how many open dead letters of a plan are alike in all that decides what would become of them.
type Tally struct {
	Policy string
	Team   decision.Team
	Reason decision.Reason
	// AtLimit: their retries are used up, so that one more must be forced.
	AtLimit bool
	// Late: their deadline has passed, so that a retry must be forced too. Those whose deadline passes until they are sent
	// are refused as well, which shows then only.
	Late bool
	// Waits: a process waits for a decision, as far as is known. Gone: none does any more (DeliveryNobody).
	// Where neither is true no review job came yet.
	Waits, Gone bool
	// Recent: born within ExpectedFor.
	Recent bool
	// N of them, and what they are worth.
	N, Cents int64
	// Oldest and Newest of their births.
	Oldest, Newest time.Time
	// Sum of their records, modulo 2⁶³: with N it tells whether a plan still matches what is there.
	Sum int64
}

// Sums add dead letters up to tallies. The keys are tallies with nothing in N, Cents, Oldest, Newest and Sum.
type Sums map[Tally]*Tally

// Merge adds a tally to that of what is alike.
func (s Sums) Merge(t Tally) {
	key := t
	key.N, key.Cents, key.Oldest, key.Newest, key.Sum = 0, 0, time.Time{}, time.Time{}, 0
	sum := s[key]
	if sum == nil {
		s[key] = &t
		return
	}
	sum.N, sum.Cents = sum.N+t.N, sum.Cents+t.Cents
	sum.Sum = (sum.Sum + t.Sum) & math.MaxInt64
	sum.Oldest = slices.MinFunc([]time.Time{sum.Oldest, t.Oldest}, time.Time.Compare)
	sum.Newest = slices.MaxFunc([]time.Time{sum.Newest, t.Newest}, time.Time.Compare)
}

// Tallies are all sums, in the order of policy, team, reason and what would become of them.
func (s Sums) Tallies() []Tally {
	all := make([]Tally, 0, len(s))
	for _, t := range s {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b Tally) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Team, b.Team),
			cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.fate(), b.fate()))
	})
	return all
}

// fate orders what would become of them.
func (t *Tally) fate() (bits int) {
	for _, is := range [...]bool{t.AtLimit, t.Late, t.Waits, t.Gone, t.Recent} {
		if bits *= 2; is {
			bits++
		}
	}
	return bits
}

// seen is what a plan found: N open dead letters with a record of at most Through, and the sum of their
// records. A run that is started by it has the id Run, so a second start finds the first.
type seen struct {
	Through, N, Sum int64
	Run             uuid.UUID
}

const (
	seenBytes  = 3*8 + len(uuid.UUID{})
	tokenBytes = seenBytes + 16
)

// token names what was seen for a command. It holds no secret: it is a check against what has changed, and no right.
func (s seen) token(c *BulkCommand) string {
	b, _ := binary.Append(nil, binary.BigEndian, s) // which cannot fail: its size is fixed
	return base64.RawURLEncoding.EncodeToString(append(b, seal(b, c)...))
}

// seal ties what was seen to the command that it was seen for. The reason and the name are not part of it.
func seal(seen []byte, c *BulkCommand) []byte {
	named, _ := json.Marshal([]any{ // of strings, numbers and truths, which cannot fail
		"bulk plan", seen, c.Action, c.Filter, c.Force, c.Fresh, c.When, c.PerMinute,
	})
	sum := sha256.Sum256(named)
	return sum[:tokenBytes-seenBytes]
}

// readToken is what was seen for c; the *Refusal of what is no token of it.
func readToken(token string, c *BulkCommand) (s seen, err error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	// Line breaks are passed over.
	if err != nil || len(b) != tokenBytes || base64.RawURLEncoding.EncodeToString(b) != token {
		return seen{}, refuse(InvalidPlan,
			"the token is not one that a plan gave; plan first, and start with the plan's token")
	}
	if string(b[seenBytes:]) != string(seal(b[:seenBytes], c)) {
		return seen{}, refuse(InvalidPlan,
			"the token is of another plan: action, filter, forceRetry, fresh, when and perMinute must be those that were "+
				"planned")
	}
	_, err = binary.Decode(b, binary.BigEndian, &s)
	return s, err
}
