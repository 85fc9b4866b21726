package journal_test

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"retry-worker/internal/testkit/golden"
)

// TestScenarios plays testdata/*.txt, which tell what the journal makes of a subject's failures, in an operator's words.
// testdata/README.md says how to read and write them.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { golden.Story(t, file, newStage(t).play) })
		})
	}
}
