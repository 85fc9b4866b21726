package zeebe_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"retry-worker/e2e/harness/zeebe"
)

func TestStopLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: needs a real broker")
	}
	t.Setenv("TMPDIR", t.TempDir())
	b := start(t, zeebe.Options{})
	pid := b.PID()
	if left := entries(t); len(left) != 1 {
		t.Errorf("the temporary folder holds %v while the broker runs, expected its data folder only", left)
	}
	for range 2 { // the second does nothing
		if err := b.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if alive(pid) {
		t.Errorf("process %d lives after Stop", pid)
	}
	if left := entries(t); len(left) != 0 {
		t.Errorf("left in the temporary folder: %v", left)
	}
	if err := b.Restart(t.Context()); err == nil {
		t.Error("a stopped broker was restarted")
	}
}

func TestStartThatFailsSaysWhyOnOneLine(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: needs a real broker")
	}
	g := broker(t, zeebe.Versions[0])
	_, port, _ := strings.Cut(g.GatewayAddress(), ":")
	for name, c := range map[string]struct {
		options zeebe.Options
		want    string
	}{
		"no heap":       {zeebe.Options{Heap: "1m"}, "heap"},
		"port taken":    {zeebe.Options{Env: []string{"ZEEBE_BROKER_GATEWAY_NETWORK_PORT=" + port}}, "in use"},
		"version":       {zeebe.Options{Version: "1.0.0"}, `"1.0.0", expected one of 8.5.8, 8.6.0`},
		"no such place": {zeebe.Options{Dir: "/dev/null/data"}, "/dev/null"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			_, err := zeebe.Start(t.Context(), c.options)
			if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, expected one line with %q", err, c.want)
			}
			if left := entries(t); len(left) != 0 {
				t.Errorf("left in the temporary folder: %v", left)
			}
			t.Log(err)
		})
	}
}

// entries of the temporary folder.
func entries(t *testing.T) []string {
	t.Helper()
	found, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range found {
		names = append(names, e.Name())
	}
	return names
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
