// Package scenarios runs the worker's scenarios end to end: the program on the development engine, with
// everybody around it played here.
//
// Scenarios run side by side on an engine for each protocol that they share, and move its clock and the worker's together when
// all of them wait for that; those that need workers of their own, or kill the engine, have one to themselves meanwhile. What
// happened is read from the events of the engine; its own counters must agree in the end.
package scenarios

import (
	"testing"
	"time"

	"retry-worker/e2e/harness"
)

const (
	// askEvery is the pause between two looks at what nobody tells of.
	askEvery = 50 * time.Millisecond
	// decideEvery is the pause between two looks of the people who decide on dead letters.
	decideEvery = 250 * time.Millisecond
)

func TestMain(m *testing.M) { harness.Main(m, harness.Parallel(14)) }
