package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestGrowthOfTheHeap(t *testing.T) {
	for used, want := range map[uint64]int{0: 200, smallHeap: 200, smallHeap + 1: 100, 1 << 40: 100} {
		if got := growth(used); got != want {
			t.Errorf("%d bytes in use: %d %%, expected %d %%", used, got, want)
		}
	}
}

// A heap that has much in use is collected as often as Go does by default.
func TestCollectorFollowsTheHeap(t *testing.T) {
	before := debug.SetGCPercent(150)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	c := new(collector)
	c.watch()
	much := make([]byte, 4*smallHeap)
	deadline := time.Now().Add(10 * time.Second)
	for inForce() != usualGrowth {
		if time.Now().After(deadline) {
			t.Fatalf("the growth is %d %%, expected %d %%", inForce(), usualGrowth)
		}
		runtime.GC()
	}
	runtime.KeepAlive(much)
}

// inForce is the growth that the runtime goes by.
func inForce() int {
	read := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(read)
	return int(read[0].Value.Uint64())
}
