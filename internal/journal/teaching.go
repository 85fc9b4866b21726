package journal

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/redact"
)

// CauseSubject returns the Subject that a cause's records are of: it has no tenant. id is its Fingerprint.ID.
func CauseSubject(policy, id string) Subject { return Subject{Policy: policy, ID: id} }

// Teaching is what a person taught of a cause: its errors are permanent, and the team acts, or transient (R26).
type Teaching struct {
	Class decision.ErrorClassification `json:"errorClassification"`
	// Team that acts; empty where the class is Transient.
	Team decision.Team `json:"responsibleTeam,omitempty"`
	// Reason and By are a person's words, redacted, and name.
	Reason string `json:"reason"`
	By     string `json:"by"`
	// Record tells of it, and was written At; not part of the record's body.
	Record int64     `json:"record,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

// Cause is a fingerprint with what was taught of it; nil where nothing was.
type Cause struct {
	Fingerprint
	Taught *Teaching
}

// TeachingBody is the body of a cause's record: what was taught, or that it holds no longer.
type TeachingBody struct {
	Teaching
	Forgotten bool `json:"forgotten,omitempty"`
}

// ErrNotTaught is why nothing was forgotten.
var ErrNotTaught = errors.New("nothing was taught of the cause")

// Teach records what a person says of a cause, for whatever is decided from then on; t replaces what was taught
// before. With t.Class empty it records that what was taught holds no longer. It returns as Analyze does, or
// ErrReasonRequired or ErrNotTaught.
func (j *Journal) Teach(ctx context.Context, policy, cause string, t Teaching) error {
	if strings.TrimSpace(t.Reason) == "" {
		return ErrReasonRequired
	}
	s, body := CauseSubject(policy, cause), TeachingBody{Teaching: t, Forgotten: t.Class == ""}
	body.Reason, body.By = storable(redact.Line(t.Reason, maxReasonBytes)), bounded(t.By)
	_, err := outcomeOf(ctx, j, Lookup{Subject: s}, func(b *batch, h *History, done *bool) error {
		switch {
		case body.Forgotten && h.Taught == nil && *done: // an earlier try was committed after all
			return nil
		case body.Forgotten && h.Taught == nil:
			return ErrNotTaught
		}
		*done = true
		b.entry(h, s, TeachingEntry, &body, Happening{}, 0)
		return nil
	})
	return err
}

// teaching folds a cause's record.
func (p *projection) teaching(l *life, b *TeachingBody) {
	if l.Taught = nil; !b.Forgotten {
		l.Taught = new(b.Teaching)
		l.Taught.Record, l.Taught.At = p.record, p.at
	}
}

// CauseOf returns the cause of a failure before anything is decided, with nothing counted; redacted is its error with
// nothing personal in it.
func CauseOf(policy string, f *decision.Failure, redacted string) *Fingerprint {
	why := cmp.Or(decision.Reason(f.Match.Name), decision.ReasonUnknown)
	if f.Error == "" && f.Match.Name == "" {
		why = decision.ReasonEmptyError
	}
	cause := &Fingerprint{Policy: policy, Reason: why, Pattern: pattern(storable(redacted))}
	cause.ID = cause.name()
	return cause
}

// Subject returns the one that the cause's own records are of.
func (f *Fingerprint) Subject() Subject { return CauseSubject(f.Policy, f.ID) }

// Apply has the failure be what t says; nil changes nothing.
func (t *Teaching) Apply(f *decision.Failure) {
	if t != nil && f.Teachable() {
		f.Teach(t.Class, t.Team, t.Record)
	}
}
