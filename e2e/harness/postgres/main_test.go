package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"retry-worker/e2e/harness"

	"github.com/jackc/pgx/v5"
)

// enough for anything that is expected to happen soon, on a busy machine too.
const enough = time.Minute

// play makes the test binary act a part instead of testing; see TestMain.
const play = "POSTGRES_TEST_PLAY"

func TestMain(m *testing.M) {
	if part := os.Getenv(play); part != "" {
		serveUntilKilled(part)
	}
	harness.Main(m)
}

// serveUntilKilled starts a server, paused where the part is so, and prints its folder and processes.
func serveUntilKilled(part string) {
	ctx := context.Background()
	i, err := Provide(ctx, nil)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	s, err := Start(ctx, i, Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	c, err := pgx.Connect(ctx, s.URL("postgres"))
	if err == nil && part == "paused" {
		err = s.Pause()
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	line := s.dir.path
	for _, p := range s.dir.processes(s.PID()) {
		line += " " + strconv.Itoa(p.pid)
	}
	fmt.Println(line)
	<-s.Done()
	_ = c.Close(ctx)
}

// within is a context that ends when something takes too long.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	t.Cleanup(cancel)
	return ctx
}

// place is a folder that the server's user can enter, as t.TempDir's are not.
func place(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "postgres-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// start runs a server until the test ends.
func start(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Start(within(t), Require(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Remove(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(within(t), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), enough)
		defer cancel()
		_ = c.Close(ctx) // the server may be dead
	})
	return c
}

// one is the single value that a query gives.
func one[T any](t *testing.T, c *pgx.Conn, query string) T {
	t.Helper()
	var value T
	if err := c.QueryRow(within(t), query).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

func do(t *testing.T, c *pgx.Conn, statement string) {
	t.Helper()
	if _, err := c.Exec(within(t), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// workers are the ids of the server's processes beside the postmaster, by its own account.
func workers(t *testing.T, c *pgx.Conn) []int {
	t.Helper()
	rows, err := c.Query(within(t), "SELECT pid FROM pg_stat_activity")
	if err != nil {
		t.Fatal(err)
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		t.Fatal(err)
	}
	if len(pids) < 5 {
		t.Fatalf("the server tells of %d processes, expected its writers and more", len(pids))
	}
	return pids
}

// state is how ps has a process's: "Ss", "T"; empty where there is none, or it is dead and waits for a
// parent to take note.
func state(t *testing.T, pid int) string {
	t.Helper()
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	if _, unknown := errors.AsType[*exec.ExitError](err); err != nil && !unknown {
		t.Fatal(err)
	}
	s := strings.TrimSpace(string(out))
	if strings.HasPrefix(s, "Z") {
		return ""
	}
	return s
}

// eventually polls until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(enough); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
	}
}

func alive(t *testing.T, pids []int) (living []int) {
	t.Helper()
	for _, pid := range pids {
		if state(t, pid) != "" {
			living = append(living, pid)
		}
	}
	return living
}

func gone(t *testing.T, pids ...int) {
	t.Helper()
	if living := alive(t, pids); len(living) > 0 {
		t.Errorf("processes %v live", living)
	}
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// oneLine checks an error that a person reads.
func oneLine(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, expected one line with %q", err, want)
	}
}

// abandon makes a folder look as if its owner had died a while ago.
func abandon(t *testing.T, dir string) {
	t.Helper()
	old := time.Now().Add(-2 * youngest)
	if err := os.Chtimes(filepath.Join(dir, ownerLock), old, old); err != nil {
		t.Fatal(err)
	}
}

func isRoot() bool { return syscall.Geteuid() == 0 }
