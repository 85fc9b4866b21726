package worker

import (
	"math/rand/v2"
	"time"
)

// backoff paces repeated tries: doubling pauses between bounds, each drawn from its upper half so that
// replicas do not move in step. Not for concurrent use.
type backoff struct {
	first, most, next time.Duration
	source            rand.PCG
}

// newBackoff returns one whose pauses the seed draws.
func newBackoff(first, most time.Duration, seed uint64) *backoff {
	return &backoff{first: first, most: most, next: first, source: *rand.NewPCG(seed, 0)}
}

func (b *backoff) reset() { b.next = b.first }

// draw returns how long to pause before the next try.
func (b *backoff) draw() time.Duration {
	pause := b.next/2 + time.Duration(b.source.Uint64()%uint64(b.next/2))
	b.next = min(2*b.next, b.most)
	return pause
}
