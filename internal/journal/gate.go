package journal

import (
	"context"
	"sync"
)

// gate is open while the journal can be written.
type gate struct {
	mu   *sync.Mutex
	open chan struct{} // closed while the gate is open
}

func newGate() gate {
	g := gate{mu: new(sync.Mutex), open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) await(ctx context.Context) bool {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return true
	default:
	}
	select {
	case <-open:
		return true
	case <-ctx.Done():
		return false
	}
}

func (g *gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !open {
		g.open = make(chan struct{})
		return
	}
	close(g.open)
}
