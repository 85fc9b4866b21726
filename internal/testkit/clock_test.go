package testkit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/clock"
	"retry-worker/internal/testkit"
)

// TestFaster: an hour of it is a minute of this machine's, and a second process agrees.
func TestFaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin := time.Now()
		c := testkit.FastClock{Origin: origin, Times: 60}
		c.Rest(t.Context(), time.Hour)
		if real := time.Since(origin); real != time.Minute {
			t.Errorf("an hour's rest took %s, want a minute", real)
		}
		if later := (testkit.FastClock{Origin: origin, Times: 60}).Now().Sub(origin); later != time.Hour {
			t.Errorf("its clock went %s, want an hour", later)
		}
	})
}

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
