package storetest

import (
	"context"
	"errors"
	"sync"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// doubled is a store that repeats its transactions on a memory store, and compares the two.
type doubled struct {
	Store
	memory *testkit.Memory
	// mu is held while the two may differ.
	mu     sync.Mutex
	broken error
}

// Transact saves the same in both, after it compared what they remember.
func (d *doubled) Transact(
	ctx context.Context, lookups []journal.Lookup, decide func(journal.Head, []journal.History) *journal.Changes,
) (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	refused := d.memory.Transact(ctx, lookups, func(head journal.Head, histories []journal.History) (c *journal.Changes) {
		err = d.Store.Transact(ctx, lookups, func(got journal.Head, remembered []journal.History) *journal.Changes {
			d.compare(got, head, nil)
			d.compare(remembered, histories, nil)
			c = decide(head, histories)
			return c
		})
		return c
	})
	d.compare(nil, nil, refused)
	return err
}

func (d *doubled) compare(got, want any, err error) {
	if diff := difference(got, want); diff != "" || err != nil {
		d.broken = errors.Join(d.broken, err, errors.New("what the stores see differs (- want, + got):\n"+diff))
	}
}

// differs returns how the two differed so far.
func (d *doubled) differs() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.broken
}

// Expunge expunges in both, and compares what they found.
func (d *doubled) Expunge(ctx context.Context, of journal.Scope,
	step func(journal.Head, *journal.Expunging) (*journal.Changes, error)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	salted, found := sameSalts(), []*journal.Expunging{}
	twice := func(head journal.Head, p *journal.Expunging) (*journal.Changes, error) {
		found = append(found, p)
		c, err := step(head, p)
		return salted(head, c), err
	}
	_ = d.memory.Expunge(ctx, of, twice)
	err := d.Store.Expunge(ctx, of, twice)
	if len(found) == 2 {
		d.compare(found[1], found[0], nil)
	}
	return err
}

// sameSalts returns a function that gives the second store's changes the salts of the first's: each draws its own.
func sameSalts() func(journal.Head, *journal.Changes) *journal.Changes {
	const length = len(`salt":"AAAAAAAAAAAAAAAA"}`)
	var drawn []string
	return func(head journal.Head, c *journal.Changes) *journal.Changes {
		if c == nil {
			return nil
		}
		first := drawn == nil
		for i := range c.Records {
			body := &c.Records[i].Body
			if at := len(*body) - length; first {
				drawn = append(drawn, (*body)[at:])
			} else {
				*body = (*body)[:at] + drawn[i]
				c.Link.Digests[i] = c.Records[i].Digest()
			}
		}
		if !first {
			c.Link = c.Link.After(head)
		}
		return c
	}
}
