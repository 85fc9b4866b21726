package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"retry-worker/internal/clock"
)

const (
	// purgeBatch records are looked at in one transaction, so that no commit waits long.
	purgeBatch = 20
	// purgePause between two of them, and purgeRest times as long as the last one took, let commits through.
	purgePause = 10 * time.Millisecond
	purgeRest  = 3
)

// PurgeStore is what a purge needs of a store.
type PurgeStore interface {
	Moment(ctx context.Context, do func(Moment) error) error
	// LastRecordBefore is the last record of the ledger's links that, from the first on, were all written before
	// t; 0 where there is none.
	LastRecordBefore(ctx context.Context, t time.Time) (int64, error)
	Expunger
}

// ErrClockAhead is why nothing is purged: this machine's clock leapt since the last purge, and may be wrong.
var ErrClockAhead = errors.New("nothing is purged: the clock leapt between two commits since the last purge, or " +
	"since the last commit; check it, then run `retry-worker journal purge --confirm` (on SQLite with the worker stopped)")

// Purge takes the records of episodes that ended before now by more than the retention, in bounded batches, each of
// which is a record; an episode of which nothing was heard for so long ends as expired. It returns how many records
// went. Where the signed instants of the links since the last purge do not lead up to now in steps of at most a tenth
// of the retention, or a day, it returns ErrClockAhead. A person who has checked the clock says confirmed, which is a
// record even where nothing goes. It may be ended at any time and goes on when it is called again. One process at a
// time should call it.
func (j *Journal) Purge(ctx context.Context, store PurgeStore, retention time.Duration, confirmed bool) (int, error) {
	now := j.now()
	through, err := store.LastRecordBefore(ctx, now.Add(-retention))
	if err == nil && !confirmed && through > 0 {
		err = store.Moment(ctx, func(m Moment) error { return checkClock(m, now, through, max(retention/10, 24*time.Hour)) })
	}
	if err != nil || !confirmed && through == 0 {
		return 0, err
	}
	gone := 0
	for of := (Scope{Through: through, Limit: purgeBatch}); ctx.Err() == nil; {
		began := time.Now()
		c, err := j.expunge(ctx, store, of, func(head Head, p *Expunging) (*Changes, error) {
			of.After = p.Last
			return p.Purge(head, j.now(), confirmed, j.publish)
		})
		if c != nil && err == nil {
			gone += c.Expunged.count()
		}
		if err != nil || of.After >= through {
			return gone, err
		}
		confirmed = false
		clock.Machine{}.Rest(ctx, max(purgePause, purgeRest*time.Since(began)))
	}
	return gone, ctx.Err()
}

// checkClock returns ErrClockAhead where links that follow one another by at most leap do not lead from the last purge
// up to now. However much was signed while the clock was further ahead, it does not count: only a purge that a person
// confirmed does, or the clock that comes back. It looks at nothing where the last purge has looked up to through.
func checkClock(m Moment, now time.Time, through int64, leap time.Duration) error {
	var b expungeBody
	var sound time.Time
	var bad error
	err := m.Expunges(true, func(e *Entry) bool {
		if e.Kind == PurgeEntry {
			b, bad = BodyOf[expungeBody](e)
			sound = e.At
		}
		return e.Kind != PurgeEntry
	})
	if err = cmp.Or(err, bad); err != nil || through <= b.Through {
		return err
	}
	var last Link
	for after := b.Link; ; after = last.Number {
		links, err := m.Links(after, linksAtOnce)
		if err != nil {
			return err
		}
		for _, l := range links {
			if (last.Number > 0 || b.Link == 0) && l.Hash != l.HashAfter(last.Hash) {
				return fmt.Errorf("nothing is purged: link %d is not what was signed; `audit verify` says more", l.Number)
			}
			if last = l; sound.IsZero() || l.At.After(sound) && l.At.Sub(sound) <= leap {
				sound = l.At
			}
		}
		if len(links) == 0 {
			break
		}
	}
	if now.Sub(sound) > leap {
		return ErrClockAhead
	}
	return nil
}

// linksAtOnce are read at a time.
const linksAtOnce = 500
