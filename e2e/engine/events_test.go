package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// event is what the tests read of the engine's events.
type event struct {
	Position, Key     int64
	ValueType, Intent string
	Value             struct{ BpmnElementType string }
}

// follow has see called with every event once, in order, over all lives of the engine, until ctx ends.
func (c *client) follow(ctx context.Context, see func(*event)) {
	for next := int64(1); ctx.Err() == nil; time.Sleep(time.Millisecond) { // between two lives
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/events?follow=true&from=%d", c.ControlURL(), next), nil)
		if err != nil {
			panic(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			continue
		}
		if response.StatusCode != http.StatusOK {
			c.t.Errorf("events from %d on: %s", next, response.Status)
		}
		var e event
		for d := json.NewDecoder(response.Body); d.Decode(&e) == nil; next, e = e.Position+1, (event{}) {
			if e.Position != next {
				c.t.Errorf("an event has the position %d, expected %d", e.Position, next)
			}
			see(&e)
		}
		_ = response.Body.Close()
	}
}
