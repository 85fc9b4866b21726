package sim

import (
	"context"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/learning"
)

const (
	// learnEvery is how often a replica reads what is learnt from, learntWithin how soon its decisions go by that.
	learnEvery, learntWithin = time.Minute, 10 * time.Minute
	// hopelessFrom is how many of no claims must have recovered for a cause to be hopeless (R26): 95 % are certain then.
	hopelessFrom = 29
)

// isLost reports whether a claim fails whenever it is sent, while there is weather.
func (s *sim) isLost(claim string) bool { return s.hopeless && !s.calm && claim[len(claim)-1]%5 > 0 }

// learn has a replica read what is learnt from, and decide by it.
func (r *replica) learn(p *part, policies func() decision.Policies) {
	learner := learning.NewLearner(r.store)
	r.journal.Prospects = learner.Prospects
	r.do(p, func(stop context.Context) {
		for stop.Err() == nil {
			_ = learner.Refresh(stop, policies(), r.Now())
			r.Rest(stop, learnEvery)
		}
	})
}

// Learnt implements learning.Source.
func (v *store) Learnt(ctx context.Context, weeks []int64, take func(*journal.LearntFigure)) (journal.Head, error) {
	if err := v.read("learnt"); err != nil {
		return journal.Head{}, err
	}
	return v.Memory.Learnt(ctx, weeks, take)
}

// cases are the claims of a cause that were retried: how many recovered, and how many did not.
type cases struct{ recovered, lost int64 }

func (s *sim) casesOf(cause string) (c cases) {
	_, _ = s.memory.Learnt(context.Background(), []int64{journal.WeekOf(time.Now())}, func(f *journal.LearntFigure) {
		switch {
		case f.Cause != cause:
		case f.Name == journal.FigureCaseRecovered:
			c.recovered += f.Value
		case f.Name == journal.FigureCaseLost:
			c.lost += f.Value
		}
	})
	return c
}

// learns notes, each minute, what there is to learn of the cause that nobody knows.
func (s *sim) learns() { s.learnt = append(s.learnt, s.casesOf(s.unknown)) }

// checkLearnt: a claim is given up for what was learnt where the policy says so, and hardly any recovers of its cause.
func (s *sim) checkLearnt(a *journal.Attempt) {
	d, now := &a.Decision, s.casesOf(a.Fingerprint)
	by := s.policies[decision.DefaultPolicy].HandOver
	given := d.Reason == decision.ReasonNoRecovery
	teachable := strings.HasPrefix(a.Error, unknownError) && d.Taught == 0
	if n := d.Learnt; given && (by != decision.DecideHandOver || !teachable || n.Recovered*10 >= n.Closed) ||
		n.Closed > now.recovered+now.lost || n.Recovered > now.recovered || n.Version > s.seen || n.Closed > 0 && by == decision.LearnNothing {
		s.fail("%s is decided on by %+v, policy %q, and what there is to learn is %+v", d.SubjectID, n, by, now)
	}
	quiet := min(time.Since(s.storeAway), time.Since(s.forgot), time.Since(s.jumped))
	if len(s.learnt) < int(learntWithin.Minutes()) || quiet < learntWithin || !teachable || a.Revision > 0 || by != decision.DecideHandOver {
		return
	}
	before := s.learnt[len(s.learnt)-int(learntWithin.Minutes())]
	if d.ShouldRetry() && now.recovered == 0 && before.lost >= hopelessFrom && !d.Learnt.Explored {
		s.fail("%s is to be retried, and %d of its cause were, in vain", d.SubjectID, before.lost)
	}
}
