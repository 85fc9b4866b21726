package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// latency is what the callers of many decisions waited.
type latency struct {
	sample
	all []time.Duration // ascending
}

// at is the wait that a share of all, from 0 to 1, does not exceed.
func (l latency) at(share float64) time.Duration {
	if len(l.all) == 0 {
		return 0
	}
	return l.all[min(int(share*float64(len(l.all))), len(l.all)-1)]
}

// paced lets failures come at random with a mean rate per second, whether or not those before them have their
// answers, and measures each from when it was due: who waits behind others, or for this very loop, counts.
func (s *session) paced(ctx context.Context, from *source, rate float64, d time.Duration) (latency, error) {
	group, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var l latency
	var mu sync.Mutex
	var all sync.WaitGroup
	random := rand.New(rand.NewPCG(3, 4))
	began := time.Now()
	before := s.reading(began)
	for due := time.Duration(0); due < d && group.Err() == nil; due += time.Duration(random.ExpFloat64() / rate * float64(time.Second)) {
		time.Sleep(due - time.Since(began))
		all.Go(func() {
			c := from.take()
			a, err := from.failure(c)
			if err == nil {
				err = s.do(group, task{c, a})
			}
			if err != nil {
				fail(err)
				return
			}
			waited := time.Since(began) - due
			from.give(c)
			mu.Lock()
			defer mu.Unlock()
			l.all = append(l.all, waited)
		})
	}
	all.Wait()
	l.sample = s.reading(began).since(before)
	slices.Sort(l.all)
	return l, ended(ctx, group)
}
