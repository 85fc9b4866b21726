package clock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/clock"
)

func TestMachineRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock.Machine
		began := c.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c.Rest(ctx, 0)
		c.Rest(ctx, -time.Hour)
		if took := c.Now().Sub(began); took != 0 {
			t.Errorf("no rest took %s", took)
		}
		c.Rest(ctx, time.Hour)
		if took := c.Now().Sub(began); took != time.Second {
			t.Errorf("a rest whose context ended after a second took %s", took)
		}
		c.Rest(ctx, time.Hour)
		if took := c.Now().Sub(began); took != time.Second {
			t.Errorf("a rest whose context had ended took %s", took-time.Second)
		}
	})
}
