package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// childMode names what a child process does, which is this test's binary started again.
const childMode = "SQLITE_STORE_CHILD"

// children by their mode; each gets a database's path and speaks on standard output.
var children = map[string]func(ctx context.Context, path string) error{
	"hold":   holdOpen,
	"commit": commitForEver,
	"limit":  meetLimit,
}

func TestMain(m *testing.M) {
	harness.Main(m, harness.Child(childMode, func(mode string) error {
		return children[mode](context.Background(), os.Args[len(os.Args)-1])
	}))
}

// child is a started one.
type child struct {
	*exec.Cmd
	lines *bufio.Scanner
}

// start starts a child, which is killed when the test ends.
func start(t *testing.T, mode, path string, attributes *syscall.SysProcAttr) *child {
	t.Helper()
	binary, err := executable()
	testkit.Must(t, err)
	c := &child{Cmd: exec.Command(binary, path)}
	c.Env = append(os.Environ(), childMode+"="+mode)
	c.Stderr, c.SysProcAttr = os.Stderr, attributes
	out, err := c.StdoutPipe()
	testkit.Must(t, err)
	_, err = c.StdinPipe() // it ends with this process
	testkit.Must(t, err)
	testkit.Must(t, c.Start())
	c.lines = bufio.NewScanner(out)
	t.Cleanup(c.kill)
	return c
}

// executable is this test's binary where every user may run it.
var executable = sync.OnceValues(func() (string, error) {
	folder, err := harness.NewFolder("sqlite")
	if err != nil {
		return "", err
	}
	harness.AtEnd(folder.Remove)
	path := folder.Join("child")
	b, err := os.ReadFile(os.Args[0])
	return path, errors.Join(err, os.WriteFile(path, b, 0o755))
})

func (c *child) kill() {
	_ = c.Process.Kill()
	_ = c.Wait()
}

// line is the next line that the child says; empty once it has ended.
func (c *child) line() string {
	if !c.lines.Scan() {
		return ""
	}
	return c.lines.Text()
}

// holdOpen has the database open until it is told to end.
func holdOpen(ctx context.Context, path string) error {
	db, err := Open(ctx, path)
	if err != nil {
		return err
	}
	fmt.Println("open")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return db.Close()
}

// commitForEver records failures and says the number of each record once it is committed.
func commitForEver(ctx context.Context, path string) error {
	db, err := Open(ctx, path)
	if err != nil {
		return err
	}
	for next := 0; ; {
		err := fail(ctx, db, 1+next%40, &next)
		if err != nil {
			return err
		}
		var record int64
		err = db.Transact(ctx, nil, func(h journal.Head, _ []journal.History) *journal.Changes {
			record = h.Record
			return nil
		})
		if err != nil {
			return err
		}
		fmt.Println(record)
	}
}

// meetLimit writes until no file may grow, and goes on once it is told that they may again.
func meetLimit(ctx context.Context, path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	db, err := Open(ctx, path)
	if err != nil {
		return err
	}
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 256 << 10, Max: old.Max}); err != nil {
		return err
	}
	next := 0
	for deadline := time.Now().Add(20 * time.Second); err == nil && time.Now().Before(deadline); {
		err = fail(ctx, db, 20, &next)
	}
	fmt.Println("met:", kindName(err), err)
	fmt.Println("probe:", kindName(db.Probe(ctx)))
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	fmt.Println("probe with room:", kindName(db.Probe(ctx)))
	fmt.Println("decided with room:", kindName(fail(ctx, db, 20, &next)))
	return db.Close()
}

func kindName(err error) string {
	if err == nil {
		return "done"
	}
	if e, ok := errors.AsType[*journal.StoreError](err); ok {
		return [...]string{"unavailable", "ambiguous", "invalid"}[e.Kind]
	}
	return fmt.Sprintf("%T", err)
}

// folder is what the folder of path holds, by name.
func folder(t *testing.T, path string) map[string]string {
	t.Helper()
	all, err := os.ReadDir(filepath.Dir(path))
	testkit.Must(t, err)
	files := map[string]string{}
	for _, e := range all {
		files[e.Name()] = testkit.Read(t, filepath.Join(filepath.Dir(path), e.Name()))
	}
	return files
}
