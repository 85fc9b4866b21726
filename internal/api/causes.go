package api

import (
	"go.uber.org/zap"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// Cause is what failures have in common: policy, reason and error, without what differs from case to case.
type Cause struct {
	// ID is its fingerprint.
	ID     string          `json:"id"`
	Policy string          `json:"policy"`
	Reason decision.Reason `json:"reason"`
	// Classification is PERMANENT where one of them was, otherwise TRANSIENT where one was.
	Classification decision.ErrorClassification `json:"classification"`
	Pattern        string                       `json:"pattern"`
	FirstSeen      string                       `json:"firstSeen"`
	LastSeen       string                       `json:"lastSeen"`
	// Failures that were decided on; of them retried, given up at the limit, given up as permanent. Recovered are the
	// episodes that ended well after one of them.
	Failures  int64 `json:"failures"`
	Retried   int64 `json:"retried"`
	Exhausted int64 `json:"exhausted"`
	Permanent int64 `json:"permanent"`
	Recovered int64 `json:"recovered"`
	// Learnt is what came of its retries.
	Learnt CauseLearnt `json:"learnt"`
	// Taught is what a person taught of it; null where nobody did.
	Taught *Teaching `json:"taught"`
}

// CauseLearnt is how many retried claims of a cause were closed in the last half year, and how many of them recovered.
type CauseLearnt struct {
	Closed    int64 `json:"closed"`
	Recovered int64 `json:"recovered"`
	// MeanRecoveryMinutes is the mean time from the first failure to the recovery; null where none recovered.
	MeanRecoveryMinutes *int64 `json:"meanRecoveryMinutes"`
	// Hopeless tells that fewer than one in ten recovers, with 95 % certainty: it may be taught as permanent.
	Hopeless bool `json:"hopeless"`
}

// Teaching is what a person taught of a cause (R26).
type Teaching struct {
	Classification decision.ErrorClassification `json:"classification"`
	// Team that acts; null where it is transient.
	Team   *string `json:"team"`
	Reason string  `json:"reason"`
	By     string  `json:"by"`
	At     string  `json:"at"`
	Record int64   `json:"record"`
}

// Forgetting takes back what was taught: what Ask sends of it is a DELETE.
type Forgetting struct {
	Reason string `json:"reason"`
}

func (c *call) causeOf(f *journal.Cause) Cause {
	shown := Cause{ID: f.ID, Policy: f.Policy, Reason: f.Reason, Classification: f.Classification, Pattern: f.Pattern,
		FirstSeen: decision.Instant(f.FirstSeen), LastSeen: decision.Instant(f.LastSeen), Failures: f.Failures,
		Retried: f.Retried, Exhausted: f.Exhausted, Permanent: f.Permanent, Recovered: f.Recovered}
	learnt := c.Prospects(f)
	shown.Learnt = CauseLearnt{Closed: learnt.Closed(), Recovered: learnt.Recovered, Hopeless: learnt.Hopeless()}
	if learnt.Recovered > 0 {
		shown.Learnt.MeanRecoveryMinutes = new(decision.Minutes(learnt.Mean()))
	}
	if t := f.Taught; t != nil {
		shown.Taught = &Teaching{t.Class, journal.OrNull(string(t.Team)), t.Reason, t.By, decision.Instant(t.At), t.Record}
	}
	return shown
}

// causes answers GET /api/v1/causes, the one with the most failures first.
func (s *API) causes(c *call) (any, error) {
	f, cursor, limit := journal.CauseFilter{Policy: c.name("policy")}, c.name("cursor"), c.limit()
	switch taught := c.text("taught"); taught {
	case "true":
		f.Taught = true
	case "", "false":
	default:
		c.invalid("taught", "taught is %.60q, expected true, false, or none", taught)
	}
	if c.wrong() != nil {
		return nil, c.wrong()
	}
	causes, next, err := c.ListCauses(c.Context(), f, cursor, limit)
	return pageOf(causes, next, c.causeOf), err
}

// cause answers GET /api/v1/causes/{id}.
func (s *API) cause(c *call) (any, error) {
	cause, err := c.Cause(c.Context(), c.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return c.causeOf(&cause), nil
}

// teach answers POST /api/v1/causes/{id}/teach, and forget DELETE.
func (s *API) teach(c *call) (any, error) {
	t := journal.Teaching{Class: decision.ErrorClassification(c.name("classification")), Team: decision.Team(c.name("team"))}
	if t.Class == "" {
		c.invalid("classification", "classification is missing, expected PERMANENT or TRANSIENT")
	}
	return s.taught(c, t)
}

func (s *API) forget(c *call) (any, error) { return s.taught(c, journal.Teaching{}) }

func (s *API) taught(c *call, t journal.Teaching) (any, error) {
	t.Reason, t.By = c.checkedReason(), c.by()
	if c.wrong() != nil {
		return nil, c.wrong()
	}
	cause, err := c.Teach(c.Context(), c.PathValue("id"), t)
	if err != nil {
		return nil, &unsure{err, "whether this was recorded is not known; GET the cause to see what is taught of it"}
	}
	s.log.Info("a cause was taught", zap.String("event", "cause_taught"), zap.String("by", t.By),
		zap.String("cause", cause.ID), zap.String("classification", string(t.Class)), zap.String("team", string(t.Team)))
	return c.causeOf(&cause), nil
}
