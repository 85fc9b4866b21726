package scenarios

import (
	"flag"
	"testing"
	"time"

	"retry-worker/e2e/harness"
)

const (
	// enough for anything that is expected to happen soon, on a busy machine too.
	enough = harness.Enough
	// askEvery is the pause between two looks at what nobody tells of.
	askEvery = 50 * time.Millisecond
	// sideBySide is how many scenarios run at once: they mostly wait.
	sideBySide = "14"
)

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", sideBySide); err != nil {
		panic(err) // the flag is there
	}
	harness.Main(m)
}
