package audit

import (
	"context"
	"iter"
	"sync"
)

// span of numbers of records or links, the first included, the last too.
type span struct{ first, last int64 }

// spans cut the numbers from first to last into pieces of one size.
func spans(first, last, size int64) iter.Seq[span] {
	return func(yield func(span) bool) {
		for ; first <= last; first += size {
			if !yield(span{first, min(first+size-1, last)}) {
				return
			}
		}
	}
}

// readAhead gives what fetch makes of each piece, in their order, and has as many of them fetched at the same time.
// All that was begun has ended when the loop over it has.
func readAhead[T any](ctx context.Context, pieces iter.Seq[span], workers int, fetch func(context.Context, span) (T, error)) iter.Seq2[T, error] {
	type result struct {
		value T
		err   error
	}
	return func(yield func(T, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		results := make(chan chan result, workers-1) // one more waits to be sent
		running.Go(func() {
			defer close(results)
			for piece := range pieces {
				r := make(chan result, 1)
				select {
				case results <- r:
				case <-ctx.Done():
					return
				}
				running.Go(func() {
					value, err := fetch(ctx, piece)
					r <- result{value, err}
				})
			}
		})
		for r := range results {
			if got := <-r; !yield(got.value, got.err) || got.err != nil {
				return
			}
		}
		if err := ctx.Err(); err != nil { // pieces may be left
			var none T
			yield(none, err)
		}
	}
}
