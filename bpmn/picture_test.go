package bpmn_test

import (
	"os"
	"os/exec"
	"testing"
)

func needNode(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("node"); err == nil {
		return
	}
	const missing = "NOT RUN: check that the models' pictures are up to date — install with: apt-get install -y nodejs npm"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
}

func TestPicturesAreMadeFromTheModelsAsTheyAre(t *testing.T) {
	needNode(t)
	if a := runNode(toolTime, "render.mjs", "--check"); a.code != 0 {
		t.Error(a.text)
	}
}
