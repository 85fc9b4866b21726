package api

import (
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/statistics"
)

// Cause is what failures share: policy, reason and error, without what differs from case to case.
type Cause struct {
	ID             string                       `json:"id" pattern:"^[0-9a-f]{16}$" doc:"Its fingerprint."`
	Policy         string                       `json:"policy"`
	Reason         decision.Reason              `json:"reason" type:"string"`
	Classification decision.ErrorClassification `json:"classification" doc:"PERMANENT where one of them was."`
	Pattern        string                       `json:"pattern" doc:"The error without what differs from case to case."`
	FirstSeen      string                       `json:"firstSeen" format:"date-time"`
	LastSeen       string                       `json:"lastSeen" format:"date-time"`
	Failures       int64                        `json:"failures" doc:"How many failures were decided on."`
	Retried        int64                        `json:"retried"`
	Exhausted      int64                        `json:"exhausted" doc:"How many were given up at the limit."`
	Permanent      int64                        `json:"permanent" doc:"How many were given up as permanent."`
	Recovered      int64                        `json:"recovered" doc:"How many episodes recovered after one of them."`
	Learnt         CauseLearnt                  `json:"learnt" doc:"What became of those closed in the last half year."`
	New            *journal.News                `json:"new" doc:"What was told of it when it was new, or back, last; null where it never was."`
	Taught         *Teaching                    `json:"taught" doc:"What a person taught of it; null where nobody did."`
}

// CauseLearnt counts the retried claims of a cause that were closed in the last half year.
type CauseLearnt struct {
	Closed              int64  `json:"closed"`
	Recovered           int64  `json:"recovered"`
	MeanRecoveryMinutes *int64 `json:"meanRecoveryMinutes" doc:"From the first failure; null where none recovered."`
	Hopeless            bool   `json:"hopeless" doc:"Fewer than one in ten recovers, with 95 % certainty."`
}

// Teaching is what a person taught about a cause (R26).
type Teaching struct {
	Classification decision.ErrorClassification `json:"classification"`
	Team           *string                      `json:"team" doc:"The team that acts; null where it is transient."`
	Reason         string                       `json:"reason" doc:"Why, in a person's words."`
	By             string                       `json:"by"`
	At             string                       `json:"at" format:"date-time"`
	Record         int64                        `json:"record" doc:"The record of the audit that tells of it."`
}

func (c *call) causeOf(f *journal.Cause) Cause {
	shown := Cause{ID: f.ID, Policy: f.Policy, Reason: f.Reason, Classification: f.Classification, Pattern: f.Pattern,
		FirstSeen: decision.Instant(f.FirstSeen), LastSeen: decision.Instant(f.LastSeen), Failures: f.Failures,
		Retried: f.Retried, Exhausted: f.Exhausted, Permanent: f.Permanent, Recovered: f.Recovered, New: f.News}
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
func (c *call) causes(in *struct {
	Policy string `json:"policy" doc:"Only those of this policy."`
	Taught bool   `json:"taught" doc:"True: only those that a person taught something of."`
	New    bool   `json:"new" doc:"True: those that were told as new, or back, within a day."`
	pageInput
}) (Page[Cause], error) {
	f := journal.CauseFilter{Policy: in.Policy, Taught: in.Taught}
	if in.New {
		f.Told = c.now().Add(-statistics.Daily)
	}
	causes, next, err := c.ListCauses(c.Context(), f, in.Cursor, in.Limit)
	return pageOf(causes, next, c.causeOf), err
}

// causeInput names a cause.
type causeInput struct {
	ID string `json:"id" in:"path" doc:"A cause's fingerprint."`
}

// cause answers GET /api/v1/causes/{id}.
func (c *call) cause(in *causeInput) (Cause, error) {
	cause, err := c.Cause(c.Context(), in.ID)
	return c.causeOf(&cause), err
}

// teach answers POST /api/v1/causes/{id}/teach, forget answers DELETE.
func (c *call) teach(in *struct {
	causeInput
	Class decision.ErrorClassification `json:"classification" required:"1" enum:"PERMANENT,TRANSIENT" doc:"What it shall be."`
	Team  decision.Team                `json:"team" doc:"The team that acts on it; none where it is transient."`
	reasonInput
}) (Cause, error) {
	return c.taught(in.ID, journal.Teaching{Class: in.Class, Team: in.Team, Reason: in.Reason})
}

func (c *call) forget(in *struct {
	causeInput
	reasonInput
}) (Cause, error) {
	return c.taught(in.ID, journal.Teaching{Reason: in.Reason})
}

func (c *call) taught(id string, t journal.Teaching) (Cause, error) {
	cause, err := c.Teach(c.Context(), id, t)
	return c.causeOf(&cause), err
}
