// Package scenarios runs the worker's scenarios end to end, on the development engine, and plays everybody around
// both.
//
// Those that need no process of their own run in bubbles, each with an engine and a worker on one clock, which jumps
// to whatever is due next; the others run as processes. The engine's events say what happened.
package scenarios

import (
	"embed"
	"testing"
	"time"

	"retry-worker/e2e/harness"
)

//go:embed testdata
var testdata embed.FS

// decideEvery is the pause between two looks of the people who decide dead letters.
const decideEvery = 250 * time.Millisecond

func TestMain(m *testing.M) { harness.Main(m, harness.Parallel(14)) }
