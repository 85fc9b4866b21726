package mail

import (
	"os"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit/wait"
)

func TestMain(m *testing.M) { harness.Main(m) }

// What it does with mail is tried by e2e/notify.
func TestItStartsAgainAndLeavesNothing(t *testing.T) {
	s, err := Start(wait.Context(t), Require(t), Settings{})
	if err != nil {
		t.Fatal(err)
	}
	url := s.URL()
	s.Kill()
	if s.listens() {
		t.Error("it listens after a kill")
	}
	if err := s.Restart(wait.Context(t)); err != nil || s.URL() != url || !s.listens() {
		t.Errorf("after a restart its address is %s, before %s (%v)", s.URL(), url, err)
	}
	if err := s.Stop(wait.Context(t)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.folder.Path); !os.IsNotExist(err) {
		t.Errorf("its folder: %v", err)
	}
}
