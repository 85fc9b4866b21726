// Package guard carries out what people change. It checks that they may (R31), records who did it, and logs it. API and
// pages change things only through it.
package guard

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/worker"
)

// Reads reads dead letters, causes and bulk runs (deadletter.Service describes its methods).
type Reads interface {
	List(ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int) ([]deadletter.Item, string, error)
	Show(ctx context.Context, id string) (deadletter.Item, error)
	Groups(ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int) ([]deadletter.Group, string, error)
	ListCauses(ctx context.Context, f journal.CauseFilter, cursor string, limit int) ([]journal.Cause, string, error)
	Cause(ctx context.Context, id string) (journal.Cause, error)
	Prospects(c *journal.Cause) journal.Prospects
	Foresee(ctx context.Context, p *decision.Policy, f *decision.Failure, redacted string) error
	Teams() []decision.Team
	Process(d *journal.DeadLetter) deadletter.Process
	Plan(ctx context.Context, c journal.BulkCommand) (deadletter.Plan, error)
	Run(ctx context.Context, id string) (journal.BulkRun, error)
	Runs(ctx context.Context, cursor string, limit int) (runs []journal.BulkRun, next string, err error)
	Items(ctx context.Context, id string, outcome journal.BulkOutcome, after int64, limit int) ([]journal.BulkItem, error)
}

// Destinations reads the state of the gates (gate.Gates).
type Destinations interface {
	Destinations() ([]gate.Destination, error)
	Destination(name string) (gate.Destination, []destination.Held, error)
}

// DeadLetters carries out what people decide. An error with a *journal.Refusal means that nothing was done; after
// any other, the decision may be recorded or not, and may be sent again. It is safe for concurrent use.
type DeadLetters interface {
	Reads
	Decide(ctx context.Context, c deadletter.Command) (deadletter.Item, error)
	Note(ctx context.Context, c deadletter.Command, verb journal.NoteVerb) (deadletter.Item, error)
	Assign(ctx context.Context, id string, a journal.Assignment) (deadletter.Item, error)
	Teach(ctx context.Context, id string, t journal.Teaching) (journal.Cause, error)
	Start(ctx context.Context, c journal.BulkCommand, token string) (run journal.BulkRun, started bool, err error)
	Steer(ctx context.Context, id string, verb journal.BulkVerb, by string) (journal.BulkRun, error)
}

// Gates takes orders about destinations.
type Gates interface {
	Destinations
	Command(ctx context.Context, name string, c destination.Order) error
}

// Recorder records outcomes and erasures (journal.Journal).
type Recorder interface {
	Conclude(ctx context.Context, o *journal.Outcome) (journal.Concluded, error)
	Erase(ctx context.Context, store journal.Expunger, e journal.Erasure) (journal.Erased, error)
}

// Services are what a Guard guards.
type Services struct {
	DeadLetters DeadLetters
	Gates       Gates
	Journal     Recorder
	Store       journal.Expunger
	// Accounts is access.Gate.Accounts; if nil, no account is known.
	Accounts func() (known []access.Identity, others bool)
	Log      *zap.Logger
}

// Guard does what the person who asks (access.From) may do, under that person's name. If the person may not, its
// methods change nothing and return an *access.Refusal; other errors are the services'. It is safe for concurrent use.
type Guard struct {
	Reads
	Destinations
	to Services
}

// New returns a Guard of the services.
func New(s Services) *Guard {
	if s.Accounts == nil {
		s.Accounts = func() ([]access.Identity, bool) { return nil, true }
	}
	return &Guard{s.DeadLetters, s.Gates, s}
}

// by returns the name of the person who asks.
func by(ctx context.Context) string { return access.From(ctx).Name }

// done logs what a person did, unless it failed with err.
func (g *Guard) done(ctx context.Context, err error, message, event string, fields ...zap.Field) {
	if err == nil {
		g.to.Log.Info(message, append([]zap.Field{zap.String("event", event), zap.String("by", by(ctx))}, fields...)...)
	}
}

// Reviewing returns the dead letter if the person who asks may decide on it or, if fresh, begin its whole ladder again.
// It checks the role before it reads the dead letter, whose team never changes.
func (g *Guard) Reviewing(ctx context.Context, id string, fresh bool) (deadletter.Item, error) {
	action := access.Review.Anew(fresh)
	if err := access.Check(ctx, action); err != nil {
		return deadletter.Item{}, err
	}
	item, err := g.Show(ctx, id)
	if err == nil {
		err = access.CheckTeam(ctx, action, string(item.Team))
	}
	return item, err
}

// Decide carries out a person's decision on a dead letter.
func (g *Guard) Decide(ctx context.Context, c deadletter.Command) (deadletter.Item, error) {
	if _, err := g.Reviewing(ctx, c.ID, c.Fresh); err != nil {
		return deadletter.Item{}, err
	}
	c.By = by(ctx)
	item, err := g.to.DeadLetters.Decide(ctx, c)
	g.done(ctx, err, "a dead letter was decided on", "dead_letter_reviewed", zap.String("deadLetterId", item.ID),
		zap.String("decision", string(c.Action)), zap.Bool("forceRetry", c.Force), zap.Bool("fresh", c.Fresh))
	return item, err
}

// Note records what a person says about a dead letter.
func (g *Guard) Note(ctx context.Context, c deadletter.Command, verb journal.NoteVerb) (deadletter.Item, error) {
	if _, err := g.Reviewing(ctx, c.ID, verb == journal.RetryLater && c.Fresh); err != nil {
		return deadletter.Item{}, err
	}
	c.By = by(ctx)
	return g.to.DeadLetters.Note(ctx, c, verb)
}

// Colleagues are the accounts that may decide on dead letters: Names in order. If Others, there may be more.
type Colleagues struct {
	Names  []string
	Others bool
}

// Colleagues returns those who may decide on the team's dead letters; for an empty team, on some team's.
func (g *Guard) Colleagues(team decision.Team) (c Colleagues) {
	known, others := g.to.Accounts()
	for _, id := range known {
		if id.May(access.Review, string(team)) || team == "" && id.Role.May(access.Review) {
			c.Names = append(c.Names, id.Name)
		}
	}
	slices.Sort(c.Names)
	c.Names, c.Others = slices.Compact(c.Names), others
	return c
}

// Assign gives a dead letter to deadletter.Me (who asks), to another who may decide on it, or to journal.Nobody.
func (g *Guard) Assign(ctx context.Context, id string, a journal.Assignment) (deadletter.Item, error) {
	item, err := g.Reviewing(ctx, id, false)
	if err != nil {
		return item, err
	}
	a.By = by(ctx)
	if a.Assignee, err = g.assignee(ctx, a.Assignee, item.Team); err != nil {
		return item, err
	}
	return g.to.DeadLetters.Assign(ctx, id, a)
}

// assignee returns the account that name means, empty for nobody. It refuses one that may not decide on the team's dead
// letters, but takes an unknown name if a provider may know it, since an assignment binds nobody.
func (g *Guard) assignee(ctx context.Context, name string, team decision.Team) (string, error) {
	switch name {
	case "", journal.Nobody:
		return "", nil
	case deadletter.Me, by(ctx):
		return by(ctx), nil
	}
	known, _ := g.to.Accounts()
	c, named := g.Colleagues(team), func(id access.Identity) bool { return id.Name == name }
	if slices.Contains(c.Names, name) || c.Others && access.CheckName(name) == nil && !slices.ContainsFunc(known, named) {
		return name, nil
	}
	return "", journal.Refuse(deadletter.InvalidAssignee,
		"assignee is %.60q, who may not decide for the team %.60q, expected one of %s", name, team, strings.Join(c.Names, ", "))
}

// Handed is the result of a Handover.
type Handed struct {
	Given int64 `json:"given" doc:"How many were given away."`
	Left  int64 `json:"left" doc:"How many were not: one of both may not decide on them, or somebody just has."`
}

// Handover gives all dead letters that somebody has to another, or to nobody. Their follow-up dates and notes stay.
func (g *Guard) Handover(ctx context.Context, of, to string) (done Handed, err error) {
	if err := access.Check(ctx, access.Handover); err != nil {
		return done, err
	}
	f := journal.DeadLetterFilter{Assignee: of, Sort: deadletter.ByAge}
	for cursor, more := "", of != journal.Nobody; more; more = cursor != "" {
		var items []deadletter.Item
		if items, cursor, err = g.List(ctx, f, cursor, deadletter.MostItems); err != nil {
			return done, err
		}
		for i := range items {
			a := items[i].Assigned
			a.Assignee = to
			_, err := g.Assign(ctx, items[i].ID, a)
			if _, denied := errors.AsType[*access.Refusal](err); err == nil {
				done.Given++
			} else if denied || journal.RefusalOf(err) != nil {
				done.Left++
			} else {
				return done, err
			}
		}
	}
	g.done(ctx, nil, "all that somebody had was given away", "dead_letters_handed_over", zap.Any("handed", done))
	return done, nil
}

// Start starts the bulk run whose plan has the token.
func (g *Guard) Start(
	ctx context.Context, c journal.BulkCommand, token string,
) (run journal.BulkRun, started bool, err error) {
	if err := access.CheckTeam(ctx, access.Bulk.Anew(c.Fresh), string(c.Filter.Team)); err != nil {
		return journal.BulkRun{}, false, err
	}
	c.By = by(ctx)
	if run, started, err = g.to.DeadLetters.Start(ctx, c, token); started {
		g.done(ctx, err, "a bulk run was started", "bulk_run_started", zap.String("runId", run.ID),
			zap.String("action", string(run.Action)), zap.Int64("perMinute", run.PerMinute),
			zap.Bool("forceRetry", run.Force), zap.Bool("fresh", run.Fresh))
	}
	return run, started, err
}

// Steer pauses, resumes or cancels a bulk run. It takes the permission that the start took.
func (g *Guard) Steer(ctx context.Context, id string, verb journal.BulkVerb) (journal.BulkRun, error) {
	if err := access.Check(ctx, access.Bulk); err != nil {
		return journal.BulkRun{}, err
	}
	run, err := g.Run(ctx, id)
	if err == nil {
		err = access.CheckTeam(ctx, access.Bulk.Anew(run.Fresh), string(run.Filter.Team))
	}
	if err != nil {
		return journal.BulkRun{}, err
	}
	run, err = g.to.DeadLetters.Steer(ctx, run.ID, verb, by(ctx))
	g.done(ctx, err, "a bulk run was changed", "bulk_run_changed", zap.String("runId", run.ID),
		zap.String("verb", string(verb)), zap.String("state", string(run.State)))
	return run, err
}

// Teach records what a person teaches about a cause.
func (g *Guard) Teach(ctx context.Context, id string, t journal.Teaching) (journal.Cause, error) {
	if err := access.Check(ctx, access.Teach); err != nil {
		return journal.Cause{}, err
	}
	t.By = by(ctx)
	cause, err := g.to.DeadLetters.Teach(ctx, id, t)
	g.done(ctx, err, "a cause was taught", "cause_taught", zap.String("cause", cause.ID),
		zap.String("classification", string(t.Class)), zap.String("team", string(t.Team)))
	return cause, err
}

// Order gives an order about a destination.
func (g *Guard) Order(ctx context.Context, name string, o destination.Order) (err error) {
	if err := access.Check(ctx, access.Order); err != nil {
		return err
	}
	if o.Reason, err = deadletter.CheckReason(o.Reason); err != nil {
		return err
	}
	o.By = by(ctx)
	err = g.to.Gates.Command(ctx, name, o)
	g.done(ctx, err, "a person gave an order about a destination", "destination_ordered", zap.String("order", string(o.Verb)))
	return err
}

// Erase erases a subject (LGPD).
func (g *Guard) Erase(ctx context.Context, e journal.Erasure) (done journal.Erased, err error) {
	if err := access.Check(ctx, access.Erase); err != nil {
		return done, err
	}
	if e.Reason, err = deadletter.CheckReason(e.Reason); err != nil {
		return done, err
	}
	e.By = by(ctx)
	done, err = g.to.Journal.Erase(ctx, g.to.Store, e)
	g.done(ctx, err, "a subject was erased", "subject_erased", zap.Int64("record", done.Record),
		zap.Int("records", done.Records))
	return done, err
}

// Conclude records how a claim of a policy ended. If the claim has an open dead letter, it takes the permission of a
// decision, since it ends a team's case like one. Nothing changes before the team is checked.
func (g *Guard) Conclude(ctx context.Context, p *decision.Policy, o *journal.Outcome) (journal.Concluded, error) {
	if err := access.Check(ctx, access.Report); err != nil {
		return journal.Concluded{}, err
	}
	o.By = by(ctx)
	for {
		done, err := g.to.Journal.Conclude(ctx, o)
		e := &done.Episode
		if err == nil && done.Changed { // the same line as for a job's report
			g.done(ctx, nil, "outcome recorded", "retry_outcome_recorded", worker.SubjectField(p, o.Subject.ID),
				zap.String("retryPolicy", o.Subject.Policy), zap.String("state", string(e.State)),
				zap.Int64("retryCount", e.Retries))
		}
		if err != nil || done.Changed || !e.State.Open() || e.DeadLetter == o.DeadLetter {
			return done, err
		}
		o.DeadLetter = e.DeadLetter
		if _, err := g.Reviewing(ctx, e.DeadLetter, false); err != nil {
			return done, err
		}
	}
}
