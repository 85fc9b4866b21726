package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math"

	"retry-worker/internal/journal"
)

// bornWithin are the records, both excluded, between which the dead letters lie that were born in the plan's period. The
// ledger tells it: a dead letter is born in the instant of its record.
func bornWithin(ctx context.Context, tx *snapshot, p *journal.DeadLetterPlan) (above, before int64, err error) {
	above, before = math.MinInt64, math.MaxInt64
	if !p.Aged() {
		return above, before, nil
	}
	var apart, first int64
	err = tx.QueryRowContext(ctx, findApart).Scan(&apart)
	if err == nil && p.Since > math.MinInt64 {
		first, err = firstSince(ctx, tx, less(p.Since, apart))
		above = first - 1
	}
	if err == nil && p.Until < math.MaxInt64 {
		var most error
		before, most = firstSince(ctx, tx, more(p.Until, apart))
		err = errors.Join(err, most)
	}
	return above, before, err
}

// less and more do not go beyond the ends of all numbers; by is 0 or more.
func less(ms, by int64) int64 { return max(ms, math.MinInt64+by) - by }
func more(ms, by int64) int64 { return min(ms, math.MaxInt64-by) + by }

// bornAt is the condition on dead letters to be born in the plan's period.
func bornAt(p *journal.DeadLetterPlan) (condition string) {
	if p.Since > math.MinInt64 {
		condition = fmt.Sprintf(" AND created_at >= %d", p.Since)
	}
	if p.Until < math.MaxInt64 {
		condition += fmt.Sprintf(" AND created_at < %d", p.Until)
	}
	return condition
}
