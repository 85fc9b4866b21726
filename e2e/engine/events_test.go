package engine_test

import (
	"context"
	"encoding/json"
)

// event is what the tests read of the engine's events.
type event struct {
	Position, Key     int64
	ValueType, Intent string
	Value             struct{ BpmnElementType string }
}

// follow has see called with every event, over all lives of the engine, until ctx ends. They are numbered from 1 on, each once.
func (c *client) follow(ctx context.Context, see func(*event)) {
	last := int64(0)
	err := c.Follow(ctx, func(line []byte) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil || e.Position != last+1 {
			c.t.Errorf("behind the event %d comes %s (%v)", last, line, err)
		}
		last = e.Position
		see(&e)
	})
	if err != nil {
		c.t.Error(err)
	}
}
