package chaos_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/internal/store"
	"retry-worker/internal/testkit"
)

// give lets nobody own a file.
func give(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if u := harness.Nobody(); u != nil {
			testkit.Must(t, os.Chown(path, int(u.Uid), int(u.Gid)))
		}
	}
}

// files are the contents of a database's files, by their names.
func files(t *testing.T, path string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, name := range []string{path, path + "-wal"} {
		content, err := os.ReadFile(name)
		if err == nil {
			all[filepath.Base(name)] = content
		} else if !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return all
}

// emptyJournal makes a journal without records.
func emptyJournal(t *testing.T, path string) {
	t.Helper()
	s, err := store.Open(context.Background(), "sqlite:"+path)
	testkit.Must(t, err)
	testkit.Must(t, s.Close())
}

// What the worker may not write it refuses at the start: one line, exit status 1, nothing changed.
func TestReadOnlySQLite(t *testing.T) {
	t.Parallel()
	s := newStub(t, "RO")
	for _, c := range []struct {
		name         string
		make         bool // the file, beforehand
		file, folder os.FileMode
		says         string
	}{
		{"file", true, 0o444, 0o755, "write access"},
		{"folder", true, 0o644, 0o555, "write access"},
		{"folder without a file", false, 0, 0o555, "write access"},
		{"unreadable file", true, 0o000, 0o755, "access"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := folder(t)
			path := filepath.Join(dir, "journal.db")
			if c.make {
				emptyJournal(t, path)
				testkit.Must(t, os.Remove(path+".lock"))
				testkit.Must(t, os.Chmod(path, c.file))
				give(t, path)
			}
			give(t, dir)
			testkit.Must(t, os.Chmod(dir, c.folder))
			t.Cleanup(func() { _ = os.Chmod(dir, 0o755) }) // so that it can be removed
			before := readable(t, path, c.file)
			line := launch(t, settings{name: "worker", gateway: s.Addr(), url: "sqlite:" + path, user: harness.Nobody()}).refuses()
			if !strings.Contains(line, path) || !strings.Contains(line, c.says) {
				t.Errorf("it said %q, want %s and %q in it", line, path, c.says)
			}
			if !maps.EqualFunc(before, readable(t, path, c.file), bytes.Equal) {
				t.Error("the file was changed")
			}
			report(t, "SQLite, read-only "+c.name, "refused: %s", strings.ReplaceAll(line, dir, "…"))
		})
	}
}

// readable is files, of those that a process without any rights must first make readable.
func readable(t *testing.T, path string, mode os.FileMode) map[string][]byte {
	t.Helper()
	if mode == 0 && os.Geteuid() != 0 {
		if os.Chmod(path, 0o400) == nil {
			defer func() { _ = os.Chmod(path, mode) }()
		}
	}
	return files(t, path)
}

// usedJournal makes a journal with claims in its file, and further ones in its write-ahead log.
func usedJournal(t *testing.T, path string) {
	t.Helper()
	s := newStub(t, "USED")
	for range 2 {
		p := serve(t, settings{name: "worker", gateway: s.Addr(), url: "sqlite:" + path})
		s.claims(300)
		s.answered(s.asked())
		if s.asked() == 300 {
			p.stop() // all is copied into the file
		} else {
			p.Kill() // the log stays
		}
	}
	if f := files(t, path); len(f["journal.db"]) < 100<<10 || len(f["journal.db-wal"]) < 100<<10 {
		t.Fatalf("the file has %d bytes, its log %d: too few to damage", len(f["journal.db"]), len(f["journal.db-wal"]))
	}
}

// overwrite n bytes of a file from a place on.
func overwrite(t *testing.T, path string, at, n int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	testkit.Must(t, err)
	_, err = f.WriteAt([]byte(strings.Repeat("damaged ", int(n/8)+1))[:n], at)
	testkit.Must(t, err)
	testkit.Must(t, f.Close())
}

// A damaged database: the worker refuses to start, says what to do, and touches nothing.
func TestDamagedSQLite(t *testing.T) {
	t.Parallel()
	original := filepath.Join(folder(t), "journal.db")
	usedJournal(t, original)
	content := files(t, original)
	size := int64(len(content["journal.db"]))
	gateway := newStub(t, "DAMAGED")
	for _, c := range []struct {
		name   string
		log    bool // stays beside it
		damage func(t *testing.T, path string)
	}{
		{"head", false, func(t *testing.T, path string) { overwrite(t, path, 0, 100) }},
		{"head, log beside it", true, func(t *testing.T, path string) { overwrite(t, path, 0, 100) }},
		{"schema page", false, func(t *testing.T, path string) { overwrite(t, path, 100, 3000) }},
		{"middle", false, func(t *testing.T, path string) { overwrite(t, path, size/3, size/3) }},
		{"middle, log beside it", true, func(t *testing.T, path string) { overwrite(t, path, size/3, size/3) }},
		{"cut in half", false, func(t *testing.T, path string) { testkit.Must(t, os.Truncate(path, size/2)) }},
		{"cut in the head", false, func(t *testing.T, path string) { testkit.Must(t, os.Truncate(path, 50)) }},
		{"emptied, log beside it", true, func(t *testing.T, path string) { testkit.Must(t, os.Truncate(path, 0)) }},
		{"the log's head", true, func(t *testing.T, path string) { overwrite(t, path+"-wal", 0, 32) }},
		{"a text", false, func(t *testing.T, path string) { testkit.Must(t, os.WriteFile(path, []byte("no database\n"), 0o600)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(folder(t), "journal.db")
			testkit.Must(t, os.WriteFile(path, content["journal.db"], 0o600))
			if c.log {
				testkit.Must(t, os.WriteFile(path+"-wal", content["journal.db-wal"], 0o600))
			}
			c.damage(t, path)
			before := files(t, path)
			line := launch(t, settings{name: "worker", gateway: gateway.Addr(), url: "sqlite:" + path}).refuses()
			for _, want := range []string{path, "is damaged", "restore the last backup", "nothing was changed"} {
				if !strings.Contains(line, want) {
					t.Errorf("it said %q, want %q in it", line, want)
				}
			}
			if !maps.EqualFunc(before, files(t, path), bytes.Equal) {
				t.Error("the file or its log was changed")
			}
		})
	}
	if polls := gateway.Polls(""); len(polls) > 0 {
		t.Errorf("%d polls by workers that refused to start", len(polls))
	}
	undamaged(t, original)
	report(t, "SQLite, damaged file", "10 damages refused with exit status 1, file and log as they were; the undamaged pair is taken")
}

// undamaged sees that the very files that were damaged are taken as they are, so that no refusal was for another
// reason.
func undamaged(t *testing.T, path string) {
	t.Helper()
	s := newStub(t, "AGAIN")
	p := serve(t, settings{name: "worker", gateway: s.Addr(), url: "sqlite:" + path})
	s.claims(10)
	s.answered(10)
	p.stop()
	if a := look(t, "sqlite:"+path); len(a.stories) < 500 {
		t.Errorf("%d claims, want those of before", len(a.stories))
	}
}

// One SQLite file is for one worker: the second is told so, and the first goes on.
func TestSecondWorkerOnOneFile(t *testing.T) {
	t.Parallel()
	s := newStub(t, "SECOND")
	path := filepath.Join(folder(t), "journal.db")
	first := serve(t, settings{name: "first", gateway: s.Addr(), url: "sqlite:" + path})
	s.claims(10)
	s.answered(10)
	line := launch(t, settings{name: "second", gateway: s.Addr(), url: "sqlite:" + path}).refuses()
	for _, want := range []string{path, fmt.Sprintf("another retry-worker (process %d) writes it already", first.PID()), "use PostgreSQL for several"} {
		if !strings.Contains(line, want) {
			t.Errorf("the second said %q, want %q in it", line, want)
		}
	}
	s.claims(10)
	s.answered(20)
	first.stop()
	second := serve(t, settings{name: "second", gateway: s.Addr(), url: "sqlite:" + path})
	s.claims(10)
	s.answered(30)
	second.stop()
	s.holdAgainst(look(t, "sqlite:"+path))
	report(t, "SQLite, a second worker", "refused: %s", strings.ReplaceAll(line, filepath.Dir(path), "…"))
}
