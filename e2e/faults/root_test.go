package faults_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"retry-worker/e2e/harness"
)

// readOnlyRoot is a root directory that holds the program and a folder for its journal, and that it cannot write to but
// for that folder.
type readOnlyRoot struct {
	t         *testing.T
	root, how string
	ways      []string // the command's arguments
}

// The ways to a read-only root, the strictest first. Each runs in a shell with the directory as $1 and
// the program inside it as $2.
var roots = []struct{ how, unshare, script string }{
	{"root file system mounted read-only, chroot", "-m",
		`mount --bind "$1" "$1" && mount --bind "$1/data" "$1/data" && mount -o remount,ro,bind "$1" && ! touch "$1/x" 2>/dev/null && exec chroot "$1" "$2" $3`},
	{"the same in a user name space", "-rm",
		`mount --bind "$1" "$1" && mount --bind "$1/data" "$1/data" && mount -o remount,ro,bind "$1" && ! touch "$1/x" 2>/dev/null && exec chroot "$1" "$2" $3`},
	{"chroot as nobody, who may write nowhere", "",
		`exec chroot --userspec=65534:65534 "$1" "$2" $3`},
	{"read-only working directory only: no right to do more here", "",
		`cd "$1" && ! touch x 2>/dev/null && exec "./$2" $3`},
}

// newReadOnlyRoot finds the strictest way that works here.
func newReadOnlyRoot(t *testing.T) *readOnlyRoot {
	t.Helper()
	r := &readOnlyRoot{t: t, root: t.TempDir()}
	content, err := os.ReadFile(harness.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.root, program0), content, 0o755); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(r.root, "data")
	if err := errors.Join(os.Mkdir(data, 0o777), os.Chmod(data, 0o777)); err != nil { // whoever the program runs as
		t.Fatal(err)
	}
	if err := os.Chmod(r.root, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(r.root, 0o755) }) // so that it can be removed
	for _, way := range roots {
		r.how, r.ways = way.how, []string{"sh", "-c", way.script, "sh", r.root, "/" + program0}
		if way.unshare != "" {
			r.ways = append([]string{"unshare", way.unshare}, r.ways...)
		}
		if out, err := exec.Command(r.ways[0], append(r.ways[1:], "version")...).CombinedOutput(); err == nil {
			t.Logf("the program runs with: %s", r.how)
			return r
		} else {
			t.Logf("not possible here: %s: %v %s", r.how, err, out)
		}
	}
	t.Fatal("no way to run the program read-only")
	return nil
}

const program0 = "retry-worker"

// rootJournal is where the program keeps its journal there.
const rootJournal = "RETRY_WORKER_DATABASE_URL=sqlite:data/journal.db"

// command starts the program there, with no more environment than the caller gives it.
func (r *readOnlyRoot) command() harness.Command {
	path, err := exec.LookPath(r.ways[0])
	if err != nil {
		r.t.Fatal(err)
	}
	return harness.Command{Path: path, Args: append(slices.Clone(r.ways[1:]), "serve")}
}

// unchanged fails where the program left anything behind.
func (r *readOnlyRoot) unchanged() {
	r.t.Helper()
	entries, err := os.ReadDir(r.root)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(entries) != 2 {
		r.t.Errorf("the root holds %v, want the program and its data only", entries)
	}
}
