//go:build !linux

package chaos_test

import (
	"os"
	"testing"
	"time"
)

// watchWrites calls wrote when a file has grown, until its end; Linux has a better way.
func watchWrites(_ *testing.T, path string, wrote func()) (end func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(100 * time.Microsecond)
		defer tick.Stop()
		size := int64(-1)
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			if info, err := os.Stat(path); err == nil && info.Size() != size {
				size = info.Size()
				wrote()
			}
		}
	}()
	return func() {
		close(stop)
		<-done
	}
}
