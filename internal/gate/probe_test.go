package gate_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestReloadWhileProbing takes other settings over while the URL of those before is asked: the race detector finds what
// both use.
func TestReloadWhileProbing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(*world) string { return "" })
		w.settings.Probe.URL = "https://portal.example/status"
		w.probe = func() bool {
			time.Sleep(time.Minute)
			return true
		}
		w.start()
		for range 100 {
			w.version.Add(1)
			time.Sleep(2 * time.Second)
		}
		w.stop()
		time.Sleep(2 * time.Minute) // the URL may still be asked
	})
}
