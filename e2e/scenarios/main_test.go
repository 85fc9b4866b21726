// Package scenarios runs the worker's scenarios end to end, on the development engine, with everybody around both played here.
//
// Those that need no process of their own play in bubbles, each with an engine and a worker that share one clock, which jumps
// from one thing that is due to the next; the others on processes. What happened is read from the events of the engine.
package scenarios

import (
	"embed"
	"testing"
	"time"

	"retry-worker/e2e/harness"
)

//go:embed testdata
var testdata embed.FS

// decideEvery is the pause between two looks of the people who decide on dead letters.
const decideEvery = 250 * time.Millisecond

func TestMain(m *testing.M) { harness.Main(m, harness.Parallel(14)) }
