package sqlite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
	"retry-worker/internal/store/storetest"
	"retry-worker/internal/testkit"
)

// TestClosedWhileAChildStarts: a child has the files open between its fork and its exec, and keeps no journal locked by that.
func TestClosedWhileAChildStarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	db, err := Open(t.Context(), path)
	testkit.Must(t, err)
	childs, err := syscall.Dup(int(db.held.Fd()))
	testkit.Must(t, err)
	defer syscall.Close(childs)
	testkit.Must(t, db.Close())
	db, err = Open(t.Context(), path)
	testkit.Must(t, err)
	testkit.Must(t, db.Close())
}

func TestSecondProcessIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	c := start(t, "hold", path, nil)
	if line := c.line(); line != "open" {
		t.Fatalf("the first process said %q", line)
	}
	_, err := Open(t.Context(), path)
	wantRefused(t, err, path, "another retry-worker", "PostgreSQL")
	link := filepath.Join(t.TempDir(), "link.db")
	testkit.Must(t, os.Symlink(path, link))
	_, err = Open(t.Context(), link)
	wantRefused(t, err, path, "another retry-worker")
	hard := filepath.Join(t.TempDir(), "hard.db")
	testkit.Must(t, os.Link(path, hard))
	_, err = Open(t.Context(), hard)
	wantRefused(t, err, hard, "another retry-worker")
	r, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatalf("a reader was refused beside the process that writes: %v", err)
	}
	defer r.Close()
	c.kill()
	testkit.Must(t, opened(t, path).Close()) // the lock ends with its process
}

// asked ends the context when it was asked for its end so often.
type asked struct {
	context.Context
	end  context.CancelFunc
	left atomic.Int64
}

func (c *asked) Done() <-chan struct{} {
	if c.left.Add(-1) < 0 {
		c.end()
	}
	return c.Context.Done()
}

// TestInterruptedOpening is a Ctrl-C at each moment of it: nothing is wrong with the file, and nobody is told so.
func TestInterruptedOpening(t *testing.T) {
	interrupted := 0
	for n := int64(0); ; n++ {
		path := filepath.Join(t.TempDir(), "journal.db")
		ctx, end := context.WithCancel(t.Context())
		c := &asked{Context: ctx, end: end}
		c.left.Store(n)
		db, err := Open(c, path)
		end()
		if err == nil {
			testkit.Must(t, db.Close())
			break
		}
		interrupted++
		wantRefused(t, err, path, "was not opened to the end")
		e, ok := errors.AsType[*journal.StoreError](err)
		if !errors.Is(err, context.Canceled) || !ok || e.Kind != journal.Unavailable {
			t.Fatalf("interrupted the %d. time that it asked: %v (%+v), expected it to be Unavailable for %v", n+1, err, e, context.Canceled)
		}
		opened(t, path)
	}
	if interrupted < 5 {
		t.Errorf("it was interrupted at %d moments, expected more", interrupted)
	}
}

// wantRefused fails where err is not one line that names the file and says all of this.
func wantRefused(t *testing.T, err error, path string, says ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("it was opened")
	}
	if strings.ContainsAny(err.Error(), "\r\n") {
		t.Errorf("the error is more than one line: %q", err)
	}
	for _, s := range append(says, path) {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("the error does not say %q: %v", s, err)
		}
	}
}

// filled is a database of some pages, closed cleanly; with a write-ahead log that was not copied yet, where log is.
func filled(t *testing.T, log bool) string {
	t.Helper()
	samplesOnce.Do(func() { samples = makeSamples(t) })
	path := filepath.Join(t.TempDir(), "journal.db")
	for name, content := range samples[log] {
		testkit.Must(t, os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte(content), 0o600))
	}
	return path
}

var (
	samplesOnce sync.Once
	samples     map[bool]map[string]string
)

// makeSamples are the files of a database whose log was copied, and of one whose second half is in the log alone.
func makeSamples(t *testing.T) map[bool]map[string]string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	db := opened(t, path)
	next, all := 0, map[bool]map[string]string{}
	for _, log := range []bool{false, true} {
		for range 20 {
			testkit.Must(t, fail(t.Context(), db, 50, &next))
		}
		if !log {
			onWriter(t, db, "PRAGMA wal_checkpoint(TRUNCATE)")
		}
		all[log] = folder(t, path)
		maps.DeleteFunc(all[log], func(name, content string) bool { return strings.HasSuffix(name, "-shm") || content == "" })
	}
	return all
}

// noise are bytes that mean nothing, the same each time.
func noise(n int) []byte {
	b, x := make([]byte, n), uint32(2463534242)
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
	return b
}

func overwrite(ending string, at int, with []byte) func(string) error {
	return func(path string) error {
		f, err := os.OpenFile(path+ending, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteAt(with, int64(at))
		return err
	}
}

// damages are what happens to files, by what is found then.
var damages = []struct {
	name string
	log  bool // a write-ahead log lies beside it
	do   func(path string) error
	says string
}{
	{"its head overwritten", false, overwrite("", 0, noise(100)), "head"},
	{"its head overwritten beside a log", true, overwrite("", 0, noise(100)), ""},
	{"its head zeroed", false, overwrite("", 0, make([]byte, 4096)), ""},
	{"cut at a page", false, func(path string) error { return os.Truncate(path, 30*4096) }, ""},
	{"cut within a page", false, func(path string) error { return os.Truncate(path, 30*4096+1000) }, ""},
	{"cut within its head", false, func(path string) error { return os.Truncate(path, 50) }, ""},
	{"cut to its first page", false, func(path string) error { return os.Truncate(path, 4096) }, ""},
	{"emptied beside a log", true, func(path string) error { return os.Truncate(path, 0) }, "write-ahead log"},
	{"lost beside a log", true, os.Remove, "write-ahead log"},
	{"a text", false, func(path string) error { return os.WriteFile(path, []byte("Bom dia\n"), 0o600) }, "SQLite"},
	{"a long text", false, func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("Bom dia\n", 5000)), 0o600) }, "SQLite"},
}

func TestDamagedIsRefused(t *testing.T) {
	for _, tt := range damages {
		t.Run(tt.name, func(t *testing.T) {
			path := filled(t, tt.log)
			testkit.Must(t, tt.do(path))
			before := folder(t, path)
			_, err := Open(t.Context(), path)
			t.Log(err)
			wantRefused(t, err, path, "is damaged", tt.says, "restore the last backup", "move", "nothing was changed")
			after := folder(t, path)
			if !maps.Equal(before, after) {
				t.Errorf("the folder was changed: it holds %v, held %v", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
			}
		})
	}
}

// TestDamageInTheMiddleIsFound: the file is not read whole as it is opened; who verifies finds it.
func TestDamageInTheMiddleIsFound(t *testing.T) {
	for name, do := range map[string]func(path string) error{
		"noise": overwrite("", 40*4096+100, noise(3*4096)), "a page of zeros": overwrite("", 50*4096, make([]byte, 4096)),
	} {
		path := filled(t, false)
		testkit.Must(t, do(path))
		r, err := OpenReader(t.Context(), path)
		testkit.Must(t, err)
		defer r.Close()
		if _, err := audit.Verify(t.Context(), r, journal.Head{}, nil); err == nil {
			t.Errorf("%s in the middle is not found", name)
		}
	}
}

// TestSoundIsOpened opens what looks odd and is sound.
func TestSoundIsOpened(t *testing.T) {
	for name, do := range map[string]func(path string) error{
		"as it is":                             func(string) error { return nil },
		"an empty file":                        func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a log that was cut":                   func(path string) error { return os.WriteFile(path+"-wal", noise(20), 0o600) },
		"a log of zeros, as power loss leaves": func(path string) error { return os.WriteFile(path+"-wal", make([]byte, 8192), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filled(t, false)
			testkit.Must(t, do(path))
			next := 0
			testkit.Must(t, fail(t.Context(), opened(t, path), 10, &next))
		})
	}
}

func TestLogIsTakenUp(t *testing.T) {
	path := filled(t, true) // 1000 decisions are in the file, 1000 in its log alone
	if head := headOf(t, opened(t, path)); head.Record != 2000 {
		t.Errorf("the head is at record %d, want 2000", head.Record)
	}
}

func TestForeignFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	for _, q := range []string{"CREATE TABLE music (id INTEGER)", "PRAGMA journal_mode = DELETE"} {
		testkit.Must(t, execute(t.Context(), path, q))
	}
	before := folder(t, path)
	_, err := Open(t.Context(), path)
	wantRefused(t, err, path, "another program's", "name another file")
	if !maps.Equal(before, folder(t, path)) {
		t.Error("the file was changed")
	}
	_, err = OpenReader(t.Context(), path)
	wantRefused(t, err, path, "no journal")
	for _, table := range []string{"identity_key", "ledger_head", "journal_schema"} { // no try will find it again
		path = filled(t, false)
		testkit.Must(t, execute(t.Context(), path, "DROP TABLE "+table))
		_, err = Open(t.Context(), path)
		storetest.WantKind(t, err, journal.Invalid, path, "no such table: "+table)
		if beside := folder(t, path); len(beside) != 1 { // SQLite removes the log once the file is closed
			t.Errorf("it is left open: beside it lie %v", slices.Sorted(maps.Keys(beside)))
		}
	}
	_, err = OpenReader(t.Context(), path)
	storetest.WantKind(t, err, journal.Invalid, path, "no such table: journal_schema")
}

func TestPlaceIsWrong(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	testkit.Must(t, os.WriteFile(file, []byte("x"), 0o600))
	for name, tt := range map[string]struct{ path, says string }{
		"no folder":               {filepath.Join(dir, "none", "journal.db"), "create it"},
		"a file for a folder":     {filepath.Join(file, "journal.db"), "is a file"},
		"a folder for a file":     {dir, "no regular file"},
		"a file below such a one": {filepath.Join(file, "x", "journal.db"), "create it"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), tt.path)
			t.Log(err)
			wantRefused(t, err, tt.path, tt.says)
			_, err = OpenReader(t.Context(), tt.path)
			wantRefused(t, err, tt.path)
		})
	}
}

// nobody are the attributes of a process that is not root's.
func nobody() *syscall.SysProcAttr {
	if os.Getuid() != 0 {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
}

// TestWithoutAccess opens what the worker's user may not write; as root it lets another user do so.
func TestWithoutAccess(t *testing.T) {
	for name, tt := range map[string]struct {
		file, folder os.FileMode
		says         string
	}{
		"a read-only file":               {0o444, 0o777, "write access"},
		"a read-only folder":             {0o666, 0o555, "access to it, to the files beside it and to its folder"},
		"a file that cannot be read":     {0o000, 0o777, "access"},
		"a folder that cannot be looked": {0o666, 0o000, "access"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filled(t, false)
			give(t, path, tt.file, tt.folder)
			c := start(t, "hold", path, nobody())
			line := c.line()
			t.Log(line)
			said, isError := strings.CutPrefix(line, "error: ")
			if !isError {
				t.Fatalf("it said %q, want an error", line)
			}
			wantRefused(t, fmt.Errorf("%s", said), path, tt.says)
			if more := c.line(); more != "" {
				t.Errorf("it went on: %q", more)
			}
		})
	}
}

// give sets the permissions, and takes them back for the clean-up.
func give(t *testing.T, path string, file, folder os.FileMode) {
	t.Helper()
	for p := filepath.Dir(path); p != os.TempDir() && len(p) > len(os.TempDir()); p = filepath.Dir(p) {
		testkit.Must(t, os.Chmod(p, 0o755))
	}
	if os.Getuid() == 0 {
		testkit.Must(t, os.Chown(path, 65534, 65534))
	}
	for p, mode := range map[string]os.FileMode{path: file, filepath.Dir(path): folder} {
		testkit.Must(t, os.Chmod(p, mode))
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Dir(path), 0o755) })
}

func TestFilesAreHidden(t *testing.T) {
	path := filled(t, true)
	for _, name := range []string{path, path + "-wal"} {
		testkit.Must(t, os.Chmod(name, 0o644))
	}
	opened(t, path)
	opened(t, path+".new")
	all, err := os.ReadDir(filepath.Dir(path))
	testkit.Must(t, err)
	for _, e := range all {
		info, err := e.Info()
		testkit.Must(t, err)
		if info.Mode().Perm()&0o007 != 0 {
			t.Errorf("everybody may read %s (%s)", e.Name(), info.Mode())
		}
		if strings.Contains(e.Name(), ".new") && info.Mode().Perm() != 0o600 {
			t.Errorf("%s is new and has the permissions %s, want 0600", e.Name(), info.Mode())
		}
	}
	if len(all) != 6 { // the database, its log and its index, twice
		t.Errorf("the folder holds %d files, want 6", len(all))
	}
}
