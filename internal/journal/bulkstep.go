package journal

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/redact"
)

// What a step of a bulk run is refused with; the texts begin with the API's error codes.
var (
	ErrBulkRunUnknown  = errors.New("run_not_found")
	ErrInvalidRunState = errors.New("invalid_run_state")
	ErrInvalidBulkRun  = errors.New("invalid_bulk_run")
)

// BulkStateError is an ErrInvalidRunState: the state that a bulk run is in does not allow the step.
type BulkStateError struct{ State BulkState }

func (e *BulkStateError) Error() string {
	return fmt.Sprintf("%v: the bulk run is %s", ErrInvalidRunState, e.State)
}

// Is tells that e is an ErrInvalidRunState.
func (e *BulkStateError) Is(target error) bool { return target == ErrInvalidRunState }

// MaxPerMinute dead letters are decided by a bulk run in a minute at most.
const MaxPerMinute = 6000

// Bulk records a step of a whole bulk run, with an entry of the audit, and returns the run as it stands then. It returns as
// Analyze does, or one of ErrReasonRequired, ErrInvalidBulkRun, ErrBadFilter, ErrBulkRunUnknown and a *BulkStateError, which
// says why the step is not possible: pause needs a run that is preparing or running, resume one that is paused, cancel one
// that has not ended, finish one that is running with nothing planned; a start an id that is new.
func (j *Journal) Bulk(ctx context.Context, s *BulkStep) (BulkRun, error) {
	if err := s.check(); err != nil {
		return BulkRun{}, err
	}
	var done BulkRun
	err := j.submit(ctx, &item{
		lookup: Lookup{Run: s.Run.ID},
		apply: func(b *batch, h *History) error {
			if h.Run != nil && done.ID != "" && h.Run.stands(&done) {
				return nil // an earlier try was committed after all
			}
			var err error
			done, err = b.bulk(s, h.Run)
			return err
		},
	})
	if err != nil {
		return BulkRun{}, err
	}
	return done, nil
}

// stands tells whether the run is in the state that a step brought another to.
func (r *BulkRun) stands(as *BulkRun) bool {
	return r.State == as.State && r.CreatedAt.Equal(as.CreatedAt) && r.ChangedAt.Equal(as.ChangedAt) && r.EndedAt.Equal(as.EndedAt)
}

// check refuses what no run could make right.
func (s *BulkStep) check() error {
	r := &s.Run
	switch {
	case r.ID == "":
		return ErrBulkRunUnknown
	case s.Verb != BulkStart:
		if !slices.Contains([]BulkVerb{BulkPause, BulkResume, BulkCancel, BulkFinish}, s.Verb) {
			return fmt.Errorf("%w: the verb is %q, expected start, pause, resume, cancel or finish", ErrInvalidBulkRun, bounded(string(s.Verb), 40))
		}
		return nil
	case strings.TrimSpace(r.Reason) == "":
		return ErrReasonRequired
	case r.Action != BulkRetry && r.Action != BulkDiscard:
		return fmt.Errorf("%w: the action is %q, expected retry or discard", ErrInvalidBulkRun, bounded(string(r.Action), 40))
	case r.PerMinute < 1 || r.PerMinute > MaxPerMinute:
		return fmt.Errorf("%w: it is to decide %d in a minute, expected 1 to %d", ErrInvalidBulkRun, r.PerMinute, MaxPerMinute)
	case r.Through < 0:
		return fmt.Errorf("%w: it is to go up to record %d, expected 0 or more", ErrInvalidBulkRun, r.Through)
	case r.Fresh && !r.Force:
		return fmt.Errorf("%w: fresh begins the whole ladder anew, which needs forceRetry", ErrInvalidBulkRun)
	case r.Action == BulkDiscard && (r.Force || r.Fresh || r.Now):
		return fmt.Errorf("%w: what is discarded is not retried: expected neither forceRetry nor fresh nor now", ErrInvalidBulkRun)
	}
	_, err := r.Filter.Plan("", 1)
	return err
}

// bulk applies a step; known is the run as it stands, nil where there is none.
func (b *batch) bulk(s *BulkStep, known *BulkRun) (BulkRun, error) {
	switch {
	case s.Verb == BulkStart && known != nil:
		return BulkRun{}, &BulkStateError{known.State}
	case s.Verb == BulkStart:
		r := s.started()
		r.State, r.CreatedAt = BulkPreparing, b.milli()
		return b.stepped(s, r), nil
	case known == nil:
		return BulkRun{}, ErrBulkRunUnknown
	}
	to, ok := known.after(s.Verb)
	if !ok {
		return BulkRun{}, &BulkStateError{known.State}
	}
	r := *known
	r.State, r.Hold, r.HeldAt = to, "", time.Time{}
	if s.Verb != BulkFinish {
		r.ChangedBy, r.ChangedAt = bounded(storable(s.By), maxNameBytes), b.milli()
	}
	if to.Ended() {
		r.EndedAt = b.milli()
	}
	return b.stepped(s, r), nil
}

// after is the state that a step leads to; false where the run does not allow it. One that was paused before all of its dead
// letters were in it goes on preparing.
func (r *BulkRun) after(v BulkVerb) (BulkState, bool) {
	switch v {
	case BulkPause:
		return BulkPaused, r.State == BulkPreparing || r.State == BulkRunning
	case BulkResume:
		if r.StartedAt.IsZero() {
			return BulkPreparing, r.State == BulkPaused
		}
		return BulkRunning, r.State == BulkPaused
	case BulkCancel:
		return BulkCancelled, !r.State.Ended()
	case BulkFinish:
		return BulkDone, r.State == BulkRunning && r.Counts[BulkPlanned] == 0
	default:
		return "", false
	}
}

// started is the run that is to begin, as it is stored.
func (s *BulkStep) started() BulkRun {
	r, f := s.Run, s.Run.Filter
	f.State, f.Query = "", bounded(strings.TrimSpace(storable(f.Query)), maxQueryBytes)
	return BulkRun{ID: storable(r.ID), Action: r.Action, Filter: f, Through: r.Through,
		Reason: storable(redact.Line(r.Reason, maxReasonBytes)), By: bounded(storable(cmp.Or(s.By, r.By)), maxNameBytes),
		Force: r.Force, Fresh: r.Fresh, Now: r.Now, PerMinute: r.PerMinute}
}

// bulkBody is the audit's word on a step. What the filter chose by is told once, with the start; its words are redacted, as
// they may be of a person's name.
type bulkBody struct {
	Run       string                `json:"bulkRun"`
	Verb      BulkVerb              `json:"verb"`
	By        string                `json:"by"`
	State     BulkState             `json:"state"`
	Action    BulkAction            `json:"action"`
	Filter    *bulkFilter           `json:"filter,omitempty"`
	Through   int64                 `json:"through,omitempty"`
	Reason    string                `json:"reason,omitempty"`
	Force     bool                  `json:"forceRetry,omitempty"`
	Fresh     bool                  `json:"fresh,omitempty"`
	Now       bool                  `json:"now,omitempty"`
	PerMinute int64                 `json:"perMinute,omitempty"`
	Total     int64                 `json:"total,omitempty"`
	Counts    map[BulkOutcome]int64 `json:"counts,omitempty"`
}

type bulkFilter struct {
	Policy      string  `json:"policy,omitempty"`
	Team        string  `json:"team,omitempty"`
	Reason      string  `json:"reason,omitempty"`
	Fingerprint string  `json:"fingerprint,omitempty"`
	Query       string  `json:"q,omitempty"`
	Since       *string `json:"since,omitempty"`
	Until       *string `json:"until,omitempty"`
}

// stepped saves the run and tells the audit.
func (b *batch) stepped(s *BulkStep, r BulkRun) BulkRun {
	body := bulkBody{Run: r.ID, Verb: s.Verb, By: bounded(storable(cmp.Or(s.By, s.Run.By)), maxNameBytes), State: r.State, Action: r.Action,
		Total: r.Total, Counts: r.Counts}
	if s.Verb == BulkStart {
		f := &r.Filter
		body.Filter = &bulkFilter{f.Policy, string(f.Team), string(f.Reason), f.Fingerprint, redact.Line(f.Query, maxQueryBytes),
			InstantOrNull(f.Since), InstantOrNull(f.Until)}
		body.Through, body.Reason, body.Force, body.Fresh, body.Now, body.PerMinute = r.Through, r.Reason, r.Force, r.Fresh, r.Now, r.PerMinute
	}
	b.changes.Runs = append(b.changes.Runs, r)
	b.entry(BulkEntry, body, Happening{})
	return r
}

// BulkCursor goes on behind the bulk run with that id.
func BulkCursor(id string) string {
	return base64.RawURLEncoding.EncodeToString(append(bulkSeal(id), id...))
}

// BulkRunPage cuts runs, of which one more than limit was looked for, to a page, and is the cursor behind it; empty where no
// more follow.
func BulkRunPage(all []BulkRun, limit int) (page []BulkRun, next string) {
	if len(all) <= limit {
		return all, ""
	}
	return slices.Clip(all[:limit]), BulkCursor(all[limit-1].ID)
}

// AfterBulkRun is the id of the bulk run that a cursor goes on behind; empty where the cursor is. The error is ErrBadCursor.
func AfterBulkRun(cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) <= sealBytes {
		return "", ErrBadCursor
	}
	id := string(b[sealBytes:])
	if BulkCursor(id) != cursor {
		return "", ErrBadCursor
	}
	return id, nil
}

func bulkSeal(id string) []byte {
	sum := sha256.Sum256(append([]byte("bulk runs\x01"), id...))
	return sum[:sealBytes]
}
