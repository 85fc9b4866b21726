package journal

import (
	"context"
	"fmt"
	"slices"
	"time"

	"retry-worker/internal/clock"
)

const (
	// maxBatch of one transaction: what a commit costs is shared by so many, and one of them waits no longer.
	maxBatch = 256
	// companyTime is how soon after another a commit begins at the earliest where commits were shared lately and fewer
	// than enough items wait: what a commit costs is shared by more then. sharedFor is for how many commits that holds.
	companyTime = 10 * time.Millisecond
	enough      = 16
	sharedFor   = 16
	// tries of a transaction before the journal is taken to be down (RN-BIL-005 §8.2), and the pauses between.
	tries      = 3
	firstPause = 100 * time.Millisecond
	// transactionTime bounds one try: three of them fit a job's time-out.
	transactionTime = 2500 * time.Millisecond
	// probePause between two probes of a journal that is down; twice as long, up to the longest, each time it goes
	// down within the longest of having come back: what takes a probe need not take a batch (a quota).
	probePause        = 250 * time.Millisecond
	longestProbePause = 16 * time.Second
	// askPause is how long nothing is asked of the store: longer, and one that is gone would not be noticed where no job
	// comes.
	askPause = 5 * time.Second
	// markPause is how long an answered mark may wait for a commit to go with.
	markPause = time.Second
	// maxMarks written at once.
	maxMarks = MostRun
	// ClockTolerance between the clocks of several writers.
	ClockTolerance = time.Minute
)

// item is one change that somebody waits for.
type item struct {
	// ctx is for how long somebody waits. What nobody waits for any more is not applied: they may have asked another.
	ctx    context.Context
	lookup Lookup
	// cause whose teaching apply gets in its History; the zero value asks for none.
	cause Subject
	apply func(b *batch, h *History) error
	// refused is what apply said last: the rules', not the store's.
	refused error
	done    chan error
}

// committer is the loop of Journal.Run: it takes whatever waits and runs one transaction for all of it.
type committer struct {
	*Journal
	// carry waits for the next transaction: a subject is in each only once.
	carry []*item
	// began is when the last commit did, shared for how many more company is waited for.
	began  time.Time
	shared int
	// answeredAt is when the store did what it was asked last.
	answeredAt time.Time
	// reopened is when the journal came back last, and pause what was between two probes then.
	reopened time.Time
	pause    time.Duration
	// lost is why the journal was down when stop or kill ended: nothing is tried any more.
	lost error
}

// Run commits what is submitted until stop ends; then it commits what waits and the last marks, and
// returns. Callers must have come to rest by then: who submits later gets ErrUnavailable. When kill ends it
// returns at once. Call it once.
func (j *Journal) Run(stop, kill context.Context) {
	defer close(j.ended)
	c := &committer{Journal: j, answeredAt: time.Now()}
	marks := time.NewTicker(markPause)
	defer marks.Stop()
	for stop.Err() == nil && kill.Err() == nil {
		if len(c.carry) == 0 {
			select {
			case i := <-j.queue:
				c.carry = append(c.carry, i)
				c.awaitCompany(stop)
			case <-marks.C:
				if len(c.queue) == 0 { // otherwise they go with what waits
					c.mark(kill)
					c.ask(stop, kill)
				}
				continue
			case <-stop.Done():
				continue
			case <-kill.Done():
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

// awaitCompany lets others come to share a commit, for a moment: who comes alone waits for nobody.
func (c *committer) awaitCompany(stop context.Context) {
	if c.shared > 0 && len(c.queue) < enough {
		clock.Machine{}.Rest(stop, time.Until(c.began.Add(companyTime)))
	}
	c.began = time.Now()
}

// of returns what a transaction holds once of: a subject, or a bulk run where there is none.
func (l *Lookup) of() Lookup {
	if l.Subject != (Subject{}) {
		return Lookup{Subject: l.Subject}
	}
	return Lookup{Run: l.Run}
}

// gather takes what waits, at most maxBatch, each subject and each bulk run once, in the order it came; and no decision of
// a run behind what a person does with it.
func (c *committer) gather() []*item {
	for len(c.carry) < maxBatch && len(c.queue) > 0 { // nobody else takes from it
		c.carry = append(c.carry, <-c.queue)
	}
	taken, rest := make([]*item, 0, len(c.carry)), c.carry[:0:0]
	known := make(map[Lookup]bool, len(c.carry))
	for _, i := range c.carry {
		if of := i.lookup.of(); known[of] || known[Lookup{Run: i.lookup.Run}] {
			rest = append(rest, i)
		} else {
			known[of] = of != Lookup{} // rejections that name nobody share a transaction
			taken = append(taken, i)
		}
	}
	c.carry = rest
	return taken
}

// transaction is one of the committer's, however often it is tried.
type transaction struct {
	items []*item
	// marks of answers that go with it.
	marks []Run
	// saved and happened are what the last try made of it.
	saved    *Changes
	happened []Happening
	// inDoubt tells that it is not known whether the last try was committed.
	inDoubt bool
}

// commit runs one transaction for the items and tells everybody. Items of which the store refuses one are done one by
// one. Where the store fails the journal is down until a probe succeeds: all are told so at once, but for those of which
// it is not known whether they were committed. They wait until the ledger can be asked.
func (c *committer) commit(stop, kill context.Context, items []*item) {
	t := &transaction{items: items}
	for c.lost == nil {
		err := c.try(kill, func() error { return c.transact(kill, t) })
		switch {
		case err == nil:
			c.shared = max(c.shared-1, 0)
			if len(items) > 1 || len(c.queue) > 0 { // before those who are answered ask again
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

// try asks something of the store up to three times.
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

// ask probes the store where nothing was asked of it for a while.
func (c *committer) ask(stop, kill context.Context) {
	if time.Since(c.answeredAt) < askPause {
		return
	}
	if err := c.try(kill, func() error { return c.probe(kill) }); err != nil && kill.Err() == nil {
		c.down(stop, kill, nil, err)
	}
}

// transact tries a transaction. Where the try before may have been committed it asks the ledger first: what stands there
// is done, with the results that its callers have.
func (c *committer) transact(kill context.Context, t *transaction) error {
	ctx, cancel := context.WithTimeout(kill, transactionTime)
	defer cancel()
	began := time.Now()
	err, held := error(nil), false
	if t.inDoubt {
		if held, err = c.store.Holds(ctx, &t.saved.Link); err != nil {
			return fmt.Errorf("ask whether a commit happened: %w", err)
		}
		t.inDoubt = false
	}
	if !held {
		err = c.decide(ctx, t)
	}
	if err != nil {
		t.inDoubt = kindOf(err) == Ambiguous && t.saved != nil
		if !t.inDoubt {
			c.putBack(t.marks)
		}
		return err
	}
	c.answeredAt = time.Now()
	if t.saved != nil {
		c.hooks.Committed(t.happened, time.Since(began))
	}
	return nil
}

// decide has the store run the transaction.
func (c *committer) decide(ctx context.Context, t *transaction) error {
	lookups := lookupsOf(t.items)
	t.marks, t.saved = c.takeMarks(), nil
	return c.store.Transact(ctx, lookups, func(head Head, histories []History) *Changes {
		b := newBatch(c.now(), head, c.publish)
		b.identities = c.key
		b.changes.Link.Answered = t.marks
		known := make(map[Subject]*History, len(lookups))
		for n := range lookups {
			known[lookups[n].Subject] = &histories[n]
		}
		for _, i := range t.items {
			h := &History{}
			if (i.lookup != Lookup{}) {
				h, histories = &histories[0], histories[1:]
			}
			if i.cause != (Subject{}) { // what was taught of it, in this transaction too
				h.Teaching = known[i.cause].Taught
			}
			if i.refused = i.ctx.Err(); i.refused == nil {
				i.refused = i.apply(b, h)
			}
		}
		t.saved, t.happened = b.seal(), b.happened
		return t.saved
	})
}

// certain returns what became of a transaction that is not the committer's: err is what the store said to changes. Where
// that leaves open whether they were committed it asks the ledger, for as long as ctx lasts.
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

// lookupsOf the items, and then of the causes that they ask for.
func lookupsOf(items []*item) []Lookup {
	lookups := make([]Lookup, 0, len(items))
	for _, i := range items {
		if (i.lookup != Lookup{}) {
			lookups = append(lookups, i.lookup)
		}
	}
	for _, i := range items {
		known := func(l Lookup) bool { return l.Subject == i.cause } // somebody may be teaching it
		if i.cause != (Subject{}) && !slices.ContainsFunc(lookups, known) {
			lookups = append(lookups, Lookup{Subject: i.cause})
		}
	}
	return lookups
}

// down fails the items, closes the gate and waits until the store can be written again; whoever comes
// meanwhile is told at once.
func (c *committer) down(stop, kill context.Context, items []*item, reason error) {
	reason = fmt.Errorf("%w: %w", ErrUnavailable, reason)
	c.gate.shut()
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
				c.gate.reopen()
				c.hooks.Open(true, nil)
				return
			}
		case <-stop.Done():
			c.lost = reason
			return
		case <-kill.Done():
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

// mark writes the marks that no commit came for; what fails is tried with the next.
func (c *committer) mark(kill context.Context) {
	c.mu.Lock()
	waiting := len(c.answered)
	c.mu.Unlock()
	if t := (&transaction{}); waiting > 0 && c.transact(kill, t) != nil && t.inDoubt {
		c.putBack(t.marks) // to mark twice is to mark once
	}
}

// takeMarks returns the runs to write next.
func (c *committer) takeMarks() []Run {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(c.answered), maxMarks)
	var taken Runs
	for _, r := range c.answered[:n] {
		taken.Add(r)
	}
	c.answered = append(c.answered[:0], c.answered[n:]...)
	return taken.All()
}

// putBack has marks that were not written be among the next.
func (c *committer) putBack(marks []Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered = append(marks, c.answered...)
}
