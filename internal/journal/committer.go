package journal

import (
	"context"
	"fmt"
	"slices"
	"time"

	"retry-worker/internal/clock"
)

const (
	// maxBatch is the most items of one transaction: so many share the cost of a commit without waiting longer for it.
	maxBatch = 256
	// sharePause is the least time between the begins of two commits, so that more items share one. It applies while
	// fewer than enough items wait, for sharedFor commits after the last shared one.
	sharePause = 10 * time.Millisecond
	enough     = 16
	sharedFor  = 16
	// tries is how often a transaction is tried before the journal counts as down (RN-BIL-005 §8.2). The pauses between
	// grow from firstPause.
	tries      = 3
	firstPause = 100 * time.Millisecond
	// transactionTime bounds one try: three fit into a job's time-out.
	transactionTime = 2500 * time.Millisecond
	// probePause is the time between two probes of a journal that is down. It doubles, up to longestProbePause,
	// whenever the journal goes down again within longestProbePause: a full quota may take a probe but no batch.
	probePause        = 250 * time.Millisecond
	longestProbePause = 16 * time.Second
	// idleProbe is the longest time without a call of the store, so that its loss is noticed even if no job comes.
	idleProbe = 5 * time.Second
	// markPause is how long an answered mark may wait for a commit to go with.
	markPause = time.Second
	// maxMarks is the most marks of one transaction.
	maxMarks = MostRun
	// ClockTolerance is how far the clocks of several writers may differ.
	ClockTolerance = time.Minute
)

// item is one change that a caller waits for.
type item struct {
	// ctx is the caller's. Once it has ended the item is not applied: the caller may have asked another replica.
	ctx    context.Context
	lookup Lookup
	// cause is the subject whose Teaching apply gets in its History; zero for none.
	cause Subject
	apply func(b *batch, h *History) error
	// refused is apply's last error: it is the rules', not the store's.
	refused error
	done    chan error
}

// committer is the loop of Journal.Run: it runs one transaction for all items that wait.
type committer struct {
	*Journal
	// carry are items left for the next transaction, as each has a subject only once.
	carry []*item
	// began is when the last commit began, shared how many more commits wait for others.
	began  time.Time
	shared int
	// answeredAt is when a call of the store last succeeded.
	answeredAt time.Time
	// reopened is when the journal last came back, pause the time between probes then.
	reopened time.Time
	pause    time.Duration
	// lost is set if stop ended while the journal was down: nothing more is tried.
	lost error
}

// Run commits what is submitted until stop ends; then it commits what waits and the last marks, and returns. Callers
// that submit later get ErrUnavailable. When kill ends Run returns at once. Call it once.
func (j *Journal) Run(stop, kill context.Context) {
	defer close(j.ended)
	stop, cancel := context.WithCancel(stop)
	defer cancel()
	defer context.AfterFunc(kill, cancel)()
	c := &committer{Journal: j, answeredAt: time.Now()}
	marks := time.NewTicker(markPause)
	defer marks.Stop()
	for stop.Err() == nil {
		if len(c.carry) == 0 {
			select {
			case i := <-j.queue:
				c.carry = append(c.carry, i)
				c.awaitOthers(stop)
			case <-marks.C:
				c.mark(kill)
				c.ask(stop, kill)
				continue
			case <-stop.Done():
				continue
			}
		}
		c.commit(stop, kill, c.gather())
		marks.Reset(markPause)
	}
	for batch := c.gather(); len(batch) > 0; batch = c.gather() {
		c.commit(stop, kill, batch)
	}
	c.mark(kill)
}

// awaitOthers waits a moment for more items to share a commit, unless the last commits had one item each.
func (c *committer) awaitOthers(stop context.Context) {
	if c.shared > 0 && len(c.queue) < enough {
		clock.Machine{}.Rest(stop, time.Until(c.began.Add(sharePause)))
	}
	c.began = time.Now()
}

// of returns what no two items of a transaction may share: the subject, or else the bulk run.
func (l *Lookup) of() Lookup {
	if l.Subject != (Subject{}) {
		return Lookup{Subject: l.Subject}
	}
	return Lookup{Run: l.Run}
}

// gather takes the items that wait, in order, at most maxBatch, each subject and each bulk run once. A run's decision
// waits for the next transaction if a step of the run is in this one.
func (c *committer) gather() []*item {
	for len(c.carry) < maxBatch && len(c.queue) > 0 { // only this loop takes from the queue
		c.carry = append(c.carry, <-c.queue)
	}
	taken, rest := make([]*item, 0, len(c.carry)), c.carry[:0:0]
	known := make(map[Lookup]bool, len(c.carry))
	for _, i := range c.carry {
		if of := i.lookup.of(); known[of] || known[Lookup{Run: i.lookup.Run}] {
			rest = append(rest, i)
		} else {
			known[of] = of != Lookup{} // rejections without a subject share a transaction
			taken = append(taken, i)
		}
	}
	c.carry = rest
	return taken
}

// transaction is one of the committer's, with all its tries.
type transaction struct {
	items []*item
	// marks are the answered records that the last try saves, saved and happened its changes and records.
	marks    []Run
	saved    *Changes
	happened []Happening
	// inDoubt reports whether the last try may or may not have been committed.
	inDoubt bool
}

// commit runs one transaction for the items and reports to their callers. If the store refuses an item, commit runs
// them one by one. If the store fails, the journal is down until a probe succeeds, and all callers are told at once,
// except when the transaction is in doubt: then they wait until the ledger can be asked.
func (c *committer) commit(stop, kill context.Context, items []*item) {
	t := &transaction{items: items}
	for c.lost == nil {
		err := c.try(kill, func() error { return c.transact(kill, t) })
		switch {
		case err == nil:
			c.shared = max(c.shared-1, 0)
			if len(items) > 1 || len(c.queue) > 0 { // measured before answered callers ask again
				c.shared = sharedFor
			}
			for _, i := range items {
				i.done <- i.refused
			}
			return
		case t.inDoubt:
			c.down(stop, kill, nil, err)
		case kindOf(err) != Invalid:
			c.down(stop, kill, items, err)
			return
		case len(items) == 1:
			items[0].done <- fmt.Errorf("%w: %w", ErrInvalid, err)
			return
		default:
			for _, i := range items {
				c.commit(stop, kill, []*item{i})
			}
			return
		}
	}
	fail(items, c.lost)
}

// try calls once up to three times.
func (c *committer) try(kill context.Context, once func() error) error {
	var err error
	for n := range tries {
		if n > 0 {
			clock.Machine{}.Rest(kill, firstPause<<(2*(n-1)))
		}
		if err = once(); err == nil || kindOf(err) == Invalid || kill.Err() != nil {
			return err
		}
	}
	return err
}

// ask probes the store if no call succeeded lately.
func (c *committer) ask(stop, kill context.Context) {
	if time.Since(c.answeredAt) < idleProbe {
		return
	}
	if err := c.try(kill, func() error { return c.probe(kill) }); err != nil && kill.Err() == nil {
		c.down(stop, kill, nil, err)
	}
}

// transact tries a transaction. If the last try is in doubt it asks the ledger first: a link that is there was
// committed, and the items' results stand.
func (c *committer) transact(kill context.Context, t *transaction) (err error) {
	ctx, cancel := context.WithTimeout(kill, transactionTime)
	defer cancel()
	began, held := time.Now(), false
	if t.inDoubt {
		if held, err = c.store.Holds(ctx, &t.saved.Link); err != nil {
			return fmt.Errorf("ask whether a commit happened: %w", err)
		}
	}
	if !held {
		err = c.decide(ctx, t)
	}
	if t.inDoubt = kindOf(err) == Ambiguous && t.saved != nil; err != nil {
		return err
	}
	c.mu.Lock()
	c.answered = slices.Delete(c.answered, 0, len(t.marks))
	c.mu.Unlock()
	c.answeredAt = time.Now()
	if t.saved != nil {
		c.hooks.Committed(t.happened, time.Since(began))
	}
	return nil
}

// decide runs the transaction in the store.
func (c *committer) decide(ctx context.Context, t *transaction) error {
	lookups, place := lookupsOf(t.items)
	c.mu.Lock()
	t.marks, t.saved = slices.Clone(c.answered[:min(len(c.answered), maxMarks)]), nil
	c.mu.Unlock()
	return c.store.Transact(ctx, lookups, func(head Head, histories []History) *Changes {
		b := newBatch(c.now(), head, c.publish)
		b.identities = c.key
		b.changes.Link.Answered = upTo(head.Record, t.marks)
		for _, i := range t.items {
			h := &History{}
			if (i.lookup != Lookup{}) {
				h = &histories[place[i.lookup.of()]]
			}
			if i.cause != (Subject{}) { // includes what this transaction teaches
				h.Teaching = histories[place[Lookup{Subject: i.cause}]].Taught
			}
			if i.refused = i.ctx.Err(); i.refused == nil {
				i.refused = i.apply(b, h)
			}
		}
		t.saved, t.happened = b.seal(), b.happened
		return t.saved
	})
}

// certain returns the error of a transaction outside the committer, where err is the store's. If err is ambiguous it
// asks the ledger whether changes were committed, until ctx ends.
func (j *Journal) certain(ctx context.Context, changes *Changes, err error) error {
	for kindOf(err) == Ambiguous && changes != nil && ctx.Err() == nil {
		switch held, failed := j.store.Holds(ctx, &changes.Link); {
		case failed != nil:
			clock.Machine{}.Rest(ctx, probePause)
		case held:
			return nil
		default:
			return &StoreError{Unavailable, err}
		}
	}
	return err
}

// lookupsOf returns the items' lookups, then those of the causes that they ask for, and the place of each by what it is
// of.
func lookupsOf(items []*item) (lookups []Lookup, place map[Lookup]int) {
	place = make(map[Lookup]int, len(items))
	add := func(l Lookup) {
		if _, known := place[l.of()]; !known && l != (Lookup{}) {
			place[l.of()] = len(lookups)
			lookups = append(lookups, l)
		}
	}
	for _, i := range items {
		add(i.lookup)
	}
	for _, i := range items { // an item may teach a cause
		add(Lookup{Subject: i.cause})
	}
	return lookups, place
}

// down closes the gate, fails the items and waits until the store can be written again. Items that come meanwhile fail
// at once.
func (c *committer) down(stop, kill context.Context, items []*item, reason error) {
	reason = fmt.Errorf("%w: %w", ErrUnavailable, reason)
	<-c.open
	c.hooks.Open(false, reason)
	fail(items, reason)
	fail(c.carry, reason)
	c.carry = nil
	c.pause = min(2*c.pause, longestProbePause)
	if c.pause == 0 || time.Since(c.reopened) > longestProbePause {
		c.pause = probePause
	}
	probe := time.NewTicker(c.pause)
	defer probe.Stop()
	for {
		select {
		case i := <-c.queue:
			i.done <- reason
		case <-probe.C:
			if err := c.probe(kill); err == nil {
				c.reopened = time.Now()
				c.open <- struct{}{}
				c.hooks.Open(true, nil)
				return
			}
		case <-stop.Done():
			c.lost = reason
			return
		}
	}
}

func fail(items []*item, reason error) {
	for _, i := range items {
		i.done <- reason
	}
}

func (c *committer) probe(kill context.Context) error {
	ctx, cancel := context.WithTimeout(kill, transactionTime)
	defer cancel()
	err := c.store.Probe(ctx)
	if err == nil {
		c.answeredAt = time.Now()
	}
	return err
}

// mark saves the marks that wait without a commit; on failure they wait for the next. Marking a record twice is
// harmless.
func (c *committer) mark(kill context.Context) {
	c.mu.Lock()
	waiting := len(c.answered)
	c.mu.Unlock()
	if waiting > 0 {
		_ = c.transact(kill, &transaction{})
	}
}

// upTo returns the marks of records up to the last. A failover of the database may have lost those of later ones, whose
// numbers others get.
func upTo(last int64, marks []Run) []Run {
	var kept Runs
	for _, r := range marks {
		if r.Last <= last {
			kept.Add(r)
		}
	}
	return kept.All()
}
