package main

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"retry-worker/internal/journal"
)

// relay is a store that is filled: it remembers by itself what the journal asks for, and hands on what the
// journal makes of it in large transactions. The rows are the journal's own; only their recall is spared. One
// goroutine uses it at a time.
type relay struct {
	to      journal.Store
	head    journal.Head
	known   map[journal.Subject]*journal.History
	byKey   map[int64]journal.Subject
	pending journal.Changes
}

// flushAt so many attempts what is pending is saved: far below what a store's time-outs allow.
const flushAt = 4000

func newRelay(ctx context.Context, to journal.Store) (*relay, error) {
	r := &relay{to: to}
	r.forget()
	err := to.Transact(ctx, nil, func(head journal.Head, _ []journal.History) *journal.Changes {
		r.head = head
		return nil
	})
	return r, err
}

// forget drops what is remembered of the subjects: they come no more.
func (r *relay) forget() {
	r.known, r.byKey = map[journal.Subject]*journal.History{}, map[int64]journal.Subject{}
}

// Transact implements journal.Store. What is pending is saved before, so that a failure leaves all as it was.
func (r *relay) Transact(ctx context.Context, lookups []journal.Lookup, decide func(journal.Head, []journal.History) *journal.Changes) error {
	if len(r.pending.Attempts) >= flushAt {
		if err := r.flush(ctx); err != nil {
			return err
		}
	}
	histories := make([]journal.History, len(lookups))
	for i := range lookups {
		if h := r.known[lookups[i].Subject]; h != nil {
			histories[i] = *h
		}
	}
	if c := decide(r.head, histories); c != nil {
		r.keep(c)
	}
	return nil
}

// Probe implements journal.Store.
func (r *relay) Probe(ctx context.Context) error { return r.to.Probe(ctx) }

func (r *relay) keep(c *journal.Changes) {
	r.head.Record += int64(len(c.Link.Digests))
	r.head.Subject += int64(len(c.Subjects))
	if len(c.Link.Digests) > 0 {
		r.head.Link, r.head.Hash, r.head.At = c.Link.Number, c.Link.Hash, c.Link.At
		r.pending.Link.At = c.Link.At
	}
	for _, s := range c.Subjects {
		r.known[s.Subject], r.byKey[s.Key] = &journal.History{Key: s.Key}, s.Subject
	}
	for _, e := range c.Episodes {
		r.history(e.Key).Episode = e.Episode
	}
	for _, a := range c.Attempts {
		h := r.history(a.Key)
		h.Last, h.Attempts = a.Attempt, a.Attempt.Number
	}
	for i, d := range c.DeadLetters {
		r.history(d.Key).DeadLetter = &c.DeadLetters[i].DeadLetter
	}
	r.pending.Link.Digests = append(r.pending.Link.Digests, c.Link.Digests...)
	to, add := reflect.ValueOf(&r.pending).Elem(), reflect.ValueOf(c).Elem()
	for i := range to.NumField() { // whatever kinds of rows there are
		if rows := to.Field(i); rows.Kind() == reflect.Slice {
			rows.Set(reflect.AppendSlice(rows, add.Field(i)))
		}
	}
}

func (r *relay) history(key int64) *journal.History { return r.known[r.byKey[key]] }

// flush saves what is pending under one link of the ledger.
func (r *relay) flush(ctx context.Context) error {
	err := r.to.Transact(ctx, nil, func(head journal.Head, _ []journal.History) *journal.Changes {
		c := r.pending
		if len(c.Link.Digests) > 0 {
			c.Link = c.Link.After(head)
		}
		return &c
	})
	if err != nil {
		return fmt.Errorf("fill the journal: %w", err)
	}
	r.pending = journal.Changes{}
	return nil
}

// filled is what a filled journal holds.
type filled struct {
	claims, attempts int64
	took             time.Duration
}

// fill records at least so many attempts of new claims, in rounds over some thousand claims at a time, so that
// a claim's attempts lie apart as they do in life. The claims that have failures to come wait in the source.
func fill(ctx context.Context, to journal.Store, from *source, attempts int64) (filled, error) {
	began := time.Now()
	r, err := newRelay(ctx, to)
	if err != nil {
		return filled{}, err
	}
	s := newSession(ctx, r, noServer)
	defer s.end()
	const atOnce = 8000
	for s.decisions.Load() < attempts {
		if err := s.fillSome(ctx, from, atOnce); err != nil {
			return filled{}, err
		}
		r.forget()
	}
	s.end() // the last marks are in
	if err := r.flush(ctx); err != nil {
		return filled{}, err
	}
	return filled{claims: r.head.Subject, attempts: s.decisions.Load(), took: time.Since(began)}, nil
}

func (s *session) fillSome(ctx context.Context, from *source, claims int) error {
	all := make([]claim, claims)
	for i := range all {
		all[i] = claim{number: from.claims.Add(1)}
	}
	for round := range int64(exhaustedAfter) {
		left := slices.DeleteFunc(slices.Clone(all), func(c claim) bool { return c.filled() <= round })
		const callers = 256 // a transaction of the journal
		_, err := s.drive(ctx, callers, func(caller int) feed {
			at := caller
			return func() (task, bool, error) {
				if at >= len(left) {
					return task{}, false, nil
				}
				c := left[at]
				at += callers
				c.failed = round
				a, err := from.failure(c)
				return task{c, a}, true, err
			}
		})
		if err != nil {
			return err
		}
	}
	for _, c := range all {
		c.failed = c.filled() - 1
		from.give(c)
	}
	return nil
}
