package decision

import (
	"cmp"
	"math"
	"strconv"
	"time"
)

// Prospects are what was learnt of a failure's cause from recorded outcomes. They never change.
type Prospects interface {
	// Version is the record up to which outcomes are in them.
	Version() int64
	// Probability returns the chance that a retry of that number (from 1) succeeds so long after the first failure. It
	// reports false where too little is known.
	Probability(retry int64, since time.Duration) (float64, bool)
	// Hopeless returns how many claims of the cause were closed and how many of them recovered, and reports whether fewer
	// than one in ten recovers, with 95 % certainty and from 20 closed ones on.
	Hopeless() (closed, recovered int64, hopeless bool)
	// Explores reports whether the subject is retried all the same: one in twenty is.
	Explores(subject string, retryCount int64) bool
}

// ExploredShare is the share of the claims that retries do not help which is retried all the same (R26).
const ExploredShare = 1.0 / 20

// Learnt is what a decision went by of what was learnt (R26).
type Learnt struct {
	// Version of the figures: the record up to which outcomes are in them.
	Version int64 `json:"version"`
	// Closed claims of the cause and the Recovered of them, where those show that retries do not help.
	Closed    int64 `json:"closed,omitempty"`
	Recovered int64 `json:"recovered,omitempty"`
	// Explored tells that it is retried all the same.
	Explored bool `json:"explored,omitempty"`
}

// handOver gives up where retries do not help and the policy says so, below evidence of rank 1 to 3 and what a person
// taught. It reports whether it did.
func (d *Decision) handOver(p *Policy, f *Failure) bool {
	if f.Prospects == nil || p.HandOver == LearnNothing || d.Taught > 0 || !f.Teachable() {
		return false
	}
	closed, recovered, hopeless := f.Prospects.Hopeless()
	if !hopeless {
		return false
	}
	d.Learnt = Learnt{Version: f.Prospects.Version(), Closed: closed, Recovered: recovered}
	switch {
	case p.HandOver != DecideHandOver:
	case f.Prospects.Explores(d.SubjectID, d.RetryCount):
		d.Learnt.Explored = true
	default:
		team := cmp.Or(f.Match.Team, p.LimitTeam)
		d.giveUp(MaxRetriesExceeded, ReasonNoRecovery, team, d.Learnt.sentence()+"; given to "+string(team)+" now")
		return true
	}
	return false
}

func (l *Learnt) sentence() string {
	return strconv.FormatInt(l.Recovered, 10) + " of " + strconv.FormatInt(l.Closed, 10) + " claims with this cause recovered by a retry"
}

// foretell sets the chance of the retry that is planned, and says what was learnt.
func (d *Decision) foretell(p *Policy, f *Failure) {
	d.SuccessProbability = 0
	if f.Prospects != nil && p.HandOver != LearnNothing {
		if chance, known := f.Prospects.Probability(d.RetryCount, d.NextRetryTime.Sub(d.FirstFailure)); known {
			d.SuccessProbability = min(max(math.Round(chance*1000)/1000, 0.001), 0.999)
			d.Learnt.Version = f.Prospects.Version()
		}
	}
	if d.Learnt.Closed > 0 {
		d.RetryReason += "; " + d.Learnt.sentence()
	}
	if d.Learnt.Explored {
		d.RetryReason += ", one in twenty is retried all the same"
	}
}
