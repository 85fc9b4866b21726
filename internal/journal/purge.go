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
	// purgeBatch is how many records one transaction looks at, so that no commit waits long.
	purgeBatch = 20
	// purgePause is the least pause between two transactions, and purgeRest the pause as a multiple of the last one's
	// time, to let commits through.
	purgePause = 10 * time.Millisecond
	purgeRest  = 3
)

// PurgeStore is what a purge needs of a store.
type PurgeStore interface {
	Moment(ctx context.Context, do func(Moment) error) error
	// LastRecordBefore returns the last record before the first one that was written at t or later; 0 for none.
	LastRecordBefore(ctx context.Context, t time.Time) (int64, error)
	Expunger
}

// ErrClockAhead says that nothing is purged, as the clock leapt since the last purge and may be wrong.
var ErrClockAhead = errors.New("nothing is purged: the clock leapt between two commits since the last purge, or " +
	"since the last commit; check it, then run `retry-worker journal purge --confirm` (on SQLite with the worker stopped)")

// Purge removes the records of episodes that ended longer ago than the retention, and returns how many it removed. An
// episode of which nothing was heard for so long expires. Purge works in small batches, each with a record of its own.
// If two links since the last purge, or the last link and now, are more than a tenth of the retention and more than a
// day apart, it returns ErrClockAhead. A person who has checked the clock sets confirmed, which is recorded even if
// nothing is removed. Purge may be interrupted at any time, and goes on when called again. One process at a time should
// call it.
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

// checkClock returns ErrClockAhead unless links at most leap apart lead from the last purge up to now. Links behind a
// larger gap do not count, however many there are, until a person confirms a purge or the clock comes back. It checks
// nothing if the last purge has looked up to through.
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
	key, err := m.IdentityKey()
	if err != nil {
		return err
	}
	last := Link{Hash: key.Start().Hash}
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

// linksAtOnce is how many links are read at a time.
const linksAtOnce = 500
