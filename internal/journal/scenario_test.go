package journal_test

import (
	"testing"
	"testing/synctest"

	"retry-worker/internal/testkit/golden"
)

// TestScenarios plays testdata/*.txt, which tell what the journal makes of a subject's failures, in an operator's words.
// testdata/README.md says how to read and write them.
func TestScenarios(t *testing.T) {
	golden.Stories(t, "testdata", func(t *testing.T, file string) {
		synctest.Test(t, func(t *testing.T) { golden.Story(t, file, newStage(t).play) })
	})
}
