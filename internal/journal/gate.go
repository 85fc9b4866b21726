package journal

import (
	"context"
	"sync"
)

// gate is open while the journal can be written, as its zero value is.
type gate struct {
	mu      sync.Mutex
	reopens chan struct{} // closed when the gate opens again; nil while it is open
}

func (g *gate) await(ctx context.Context) bool {
	g.mu.Lock()
	reopens := g.reopens
	g.mu.Unlock()
	if reopens == nil {
		return true
	}
	select {
	case <-reopens:
		return true
	case <-ctx.Done():
		return false
	}
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reopens = make(chan struct{})
}

func (g *gate) reopen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.reopens)
	g.reopens = nil
}
