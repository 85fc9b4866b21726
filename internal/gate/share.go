package gate

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"retry-worker/internal/clock"
	"retry-worker/internal/journal"
)

const (
	// shareLease begins the names of the leases by which replicas count each other, mostShares how many there are: a
	// replica that gets none lets nobody through at once.
	shareLease = "gates/"
	mostShares = 16
	// shareSpan is how long one lasts that is not renewed.
	shareSpan = 15 * time.Second
	// freshFor is how long a replica that does not lead lets claims through on what it heard last.
	freshFor = 2 * time.Second
)

// share is this replica's part in what goes at once. Its instants are those of this machine's clock.
type share struct {
	replicas int
	// from is when all others have counted this one, until when its lease ends.
	from, until time.Time
}

// count returns how many replicas take part; mostShares where that is not known.
func (s *share) count() int {
	if !time.Now().Before(s.until) {
		return mostShares
	}
	return s.replicas
}

// Share has this process take part in what goes at once, until stop ends.
func (g *Gates) Share(stop context.Context) {
	slot := 1
	for stop.Err() == nil {
		if g.takePart(stop, slot) {
			clock.Machine{}.Rest(stop, shareSpan/3)
		} else if slot = slot%mostShares + 1; slot == 1 {
			clock.Machine{}.Rest(stop, shareSpan/3)
		}
	}
	g.mu.Lock()
	g.share = share{}
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(stop), callTime)
	defer cancel()
	_, _ = g.Store.Lease(ctx, shareLease+strconv.Itoa(slot), g.id, 0)
}

// takePart takes or renews a share, and reports whether it is this replica's or may still be.
func (g *Gates) takePart(ctx context.Context, slot int) bool {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	asked := time.Now()
	held, err := g.Store.Lease(ctx, shareLease+strconv.Itoa(slot), g.id, shareSpan)
	if err != nil || !held {
		return err != nil
	}
	n, err := g.Store.Leases(ctx, shareLease, shareSpan)
	if err != nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s := &g.share
	if s.replicas = n; asked.After(s.until) {
		s.from = asked.Add(shareSpan)
	}
	if s.until = asked.Add(shareSpan); n == 1 {
		s.from = asked
	}
	return true
}

// mayAdmit reports whether this replica may let claims through at once.
func (g *Gates) mayAdmit() bool {
	now := time.Now()
	return !now.Before(g.share.from) && now.Before(g.share.until) && (g.leads || now.Sub(g.heard) < freshFor)
}

const (
	// countEvery is how often it is recorded what went, so that people see a day of it; othersCountEvery that of a
	// replica which does not lead, as the leader weighs failures against what all admitted.
	countEvery       = 15 * time.Minute
	othersCountEvery = 20 * time.Second
)

// count returns the counts of a destination since the last record of them.
func (g *Gates) count(name string) *journal.Traffic {
	t := g.traffic[name]
	if t == nil {
		t = &journal.Traffic{Replica: g.id, Since: g.Clock.Now().UTC().Truncate(time.Millisecond)}
		g.traffic[name] = t
	}
	return t
}

// counts are when the last of them began, by destination and replica.
type counts map[[2]string]time.Time

// isNew reports whether a count is not the last of its replica told again, as its acknowledgement was lost.
func (c counts) isNew(name string, t *journal.Traffic) bool {
	of := [2]string{name, t.Replica}
	again := c[of].Equal(t.Since)
	c[of] = t.Since
	return !again
}

// flush records the counts that are due. What a replica counted that ended is forgotten.
func (g *Gates) flush(ctx context.Context) error {
	due := g.dueCounts()
	for _, name := range slices.Sorted(maps.Keys(due)) {
		if err := g.Memory.RecordDestination(ctx, name, journal.DestinationBody{Traffic: due[name]}); err != nil {
			return err // the same is told again: it may be recorded after all
		}
		g.mu.Lock()
		delete(g.flushing, name)
		g.mu.Unlock()
	}
	return nil
}

// dueCounts returns the counts that are to be recorded, nothing of which changes any more.
func (g *Gates) dueCounts() map[string]*journal.Traffic {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.Clock.Now()
	for name, t := range g.traffic {
		if g.flushing[name] != nil || g.leads && t.Since.Truncate(countEvery).Equal(now.Truncate(countEvery)) ||
			!g.leads && now.Sub(t.Since) < othersCountEvery {
			continue
		}
		g.flushing[name] = t
		delete(g.traffic, name)
	}
	return maps.Clone(g.flushing)
}
