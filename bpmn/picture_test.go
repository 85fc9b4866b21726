package bpmn_test

import (
	"os/exec"
	"testing"

	"retry-worker/e2e/harness"
)

func TestPicturesAreMadeFromTheModelsAsTheyAre(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		harness.LeaveOut(t, "check that the models' pictures are up to date — install with: apt-get install -y nodejs npm")
	}
	if a := runNode(toolTime, "render.mjs", "--check"); a.code != 0 {
		t.Error(a.text)
	}
}
