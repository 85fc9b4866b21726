package journal

import (
	"context"
	"time"
)

const (
	// purgeBatch records go in one transaction, so that no commit waits long.
	purgeBatch = 500
	// purgePause between two of them lets commits through.
	purgePause = 20 * time.Millisecond
)

// PurgeStore is what a purge needs of a store.
type PurgeStore interface {
	Archive
	Purger
}

// purgeBody is the audit's word on records that are rightly gone.
type purgeBody struct {
	// Through is the last record that was purged.
	Through int64 `json:"through"`
}

// Purge deletes what was recorded before that instant, in bounded batches, after it has told the audit up to
// where: records are missing rightly only below that. It returns how many were deleted. It may be ended at any
// time and goes on when it is called again. One process at a time should call it.
func (j *Journal) Purge(ctx context.Context, store PurgeStore, before time.Time) (int, error) {
	through, err := store.LastRecordBefore(ctx, before)
	if err != nil || through == 0 {
		return 0, err
	}
	oldest, err := store.Records(ctx, RecordFilter{}, 0, 1)
	if err != nil || len(oldest) == 0 || oldest[0].number() > through {
		return 0, err
	}
	err = j.submit(ctx, &item{apply: func(b *batch, _ *History) error {
		b.entry(PurgeEntry, purgeBody{through}, Happening{})
		return nil
	}})
	if err != nil {
		return 0, err
	}
	deleted := 0
	for ctx.Err() == nil {
		n, err := store.Purge(ctx, through, purgeBatch)
		deleted += n
		if err != nil || n < purgeBatch {
			return deleted, err
		}
		sleep(ctx, purgePause)
	}
	return deleted, ctx.Err()
}

// number of the record.
func (r *Record) number() int64 {
	if r.Attempt != nil {
		return r.Attempt.Record
	}
	return r.Entry.Record
}
