package postgres

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestStartThatFailsSaysWhyAndLeavesNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	i := Require(t)
	for name, c := range map[string]struct {
		options Options
		want    string
	}{
		"port taken":    {Options{Port: l.Addr().(*net.TCPAddr).Port}, "its port is taken"},
		"no such name":  {Options{Settings: map[string]string{"no_such_setting": "1"}}, "no_such_setting"},
		"no such value": {Options{Settings: map[string]string{"fsync": "perhaps"}}, `"fsync"`},
		"no such place": {Options{Dir: "/dev/null/data"}, "/dev/null"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := place(t)
			t.Setenv("TMPDIR", dir)
			_, err := Start(within(t), i, c.options)
			oneLine(t, err, c.want)
			if left := entries(t, dir); len(left) != 0 {
				t.Errorf("left in the temporary folder: %v", left)
			}
			t.Log(err)
		})
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	i, dir := Require(t), place(t)
	t.Setenv("TMPDIR", dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := Start(ctx, i, Options{})
		done <- err
	}()
	eventually(t, "initdb at work", func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, "*", "data.partial", "base"))
		return len(found) > 0
	})
	cancel()
	select {
	case err := <-done:
		oneLine(t, err, "context canceled")
	case <-time.After(enough):
		t.Fatal("Start goes on")
	}
	if left := entries(t, dir); len(left) != 0 {
		t.Errorf("left in the temporary folder: %v", left)
	}
}

func TestRootsClosedFoldersAreNamed(t *testing.T) {
	if !isRoot() {
		t.Skip("everybody enters their own folders; only root runs the server as somebody else")
	}
	closed := t.TempDir()
	if err := os.Chmod(filepath.Dir(closed), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Start(within(t), Require(t), Options{Dir: filepath.Join(closed, "data")})
	oneLine(t, err, "cannot enter "+filepath.Dir(closed))
	t.Setenv("TMPDIR", closed)
	s := start(t, Options{}) // in another temporary folder
	if n := one[int](t, connect(t, s.URL("postgres")), "SELECT 1"); n != 1 {
		t.Errorf("select 1 is %d", n)
	}
}

func TestAServerEndsWithAKilledProcess(t *testing.T) {
	for _, part := range []string{"running", "paused"} {
		t.Run(part, func(t *testing.T) {
			i, dir := Require(t), place(t)
			t.Setenv("TMPDIR", dir)
			home, pids := killedOwner(t, part)
			if part == "running" {
				eventually(t, "its processes end", func() bool { return len(alive(t, pids)) == 0 })
			}
			abandon(t, home)
			s, err := Start(within(t), i, Options{})
			if err != nil {
				t.Fatal(err)
			}
			gone(t, pids...)
			if left := entries(t, dir); len(left) != 1 || left[0] != s.dir.path {
				t.Errorf("the temporary folder holds %v, expected the new server's folder only", left)
			}
			if err := s.Remove(); err != nil {
				t.Error(err)
			}
		})
	}
}

// killedOwner is a server whose process was killed: its folder and processes.
func killedOwner(t *testing.T, part string) (home string, pids []int) {
	t.Helper()
	owner := testBinary(t, play+"="+part)
	fields := strings.Fields(owner.firstLine(t))
	owner.kill(t)
	for _, f := range fields[1:] {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatalf("the process said %q", fields)
		}
		pids = append(pids, pid)
	}
	if len(pids) < 5 {
		t.Fatalf("the process said %q, expected a folder and process ids", fields)
	}
	return fields[0], pids
}
