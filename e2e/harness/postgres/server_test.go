package postgres

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	first, second := connect(t, Database(t)), connect(t, Database(t))
	do(t, first, "CREATE TABLE t (x int)")
	do(t, second, "CREATE TABLE t (x int)")
	if got := one[int](t, first, "SELECT 1"); got != 1 {
		t.Errorf("select 1 is %d", got)
	}
	for setting, want := range map[string]string{
		"fsync": "on", "full_page_writes": "on", "listen_addresses": "127.0.0.1", "server_encoding": "UTF8",
	} {
		if got := one[string](t, first, "SHOW "+setting); got != want {
			t.Errorf("%s is %q, expected %q", setting, got, want)
		}
	}
	if version := one[int](t, first, "SELECT current_setting('server_version_num')::int"); version < minVersion*10_000 {
		t.Errorf("the version is %d, expected 15 or newer", version)
	}
}

func TestADatabaseIsDroppedWithItsTest(t *testing.T) {
	var name string
	t.Run("inner", func(t *testing.T) {
		c := connect(t, Database(t))
		name = one[string](t, c, "SELECT current_database()")
	})
	c := connect(t, Shared(t).URL("postgres"))
	if n := one[int](t, c, "SELECT count(*) FROM pg_database WHERE datname = '"+name+"'"); n != 0 {
		t.Errorf("the database %s is there after its test", name)
	}
}

func TestDatabasesHaveTheNamesTheyAreGiven(t *testing.T) {
	s := Shared(t)
	const name = `odd "name" of a hospital/ção`
	url, err := s.CreateDatabase(within(t), name)
	if err != nil {
		t.Fatal(err)
	}
	if got := one[string](t, connect(t, url), "SELECT current_database()"); got != name {
		t.Errorf("the database is %q, expected %q", got, name)
	}
	_, err = s.CreateDatabase(within(t), name)
	oneLine(t, err, "already exists")
	if err := s.DropDatabase(within(t), name); err != nil {
		t.Error(err)
	}
}

func TestAKilledServerRecoversWhatWasCommitted(t *testing.T) {
	s := start(t, Options{})
	url, err := s.CreateDatabase(within(t), "journal")
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, url)
	do(t, c, "CREATE TABLE attempts (n int)")
	do(t, c, "INSERT INTO attempts SELECT generate_series(1, 1000)")
	open := connect(t, url)
	do(t, open, "BEGIN")
	do(t, open, "INSERT INTO attempts VALUES (1001)")
	busy := connect(t, url)
	ended := make(chan error, 1)
	go func() {
		_, err := busy.Exec(context.Background(), "SELECT count(*) FROM generate_series(1, 1000000000000)")
		ended <- err
	}()
	eventually(t, "a busy connection", func() bool {
		return one[int](t, c, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%1000000000000%' AND pid <> pg_backend_pid()") == 1
	})
	pids := append(workers(t, c), s.PID())

	s.Kill()
	gone(t, pids...)
	if err := <-ended; err == nil {
		t.Error("a query of a killed server had an answer")
	}
	if _, err := os.Stat(filepath.Join(s.dir.data(), "postmaster.pid")); err != nil {
		t.Errorf("the dead server's lock file: %v, expected that it was left", err)
	}
	if err := s.Restart(within(t)); err != nil {
		t.Fatal(err)
	}
	if s.URL("journal") != url {
		t.Errorf("the address is %s, expected %s as before", s.URL("journal"), url)
	}
	if n := one[int](t, connect(t, url), "SELECT count(*) FROM attempts"); n != 1000 {
		t.Errorf("%d rows, expected the 1000 committed", n)
	}
	if log := strings.Join(s.Log(), "\n"); !strings.Contains(log, "automatic recovery in progress") {
		t.Errorf("the log tells of no recovery:\n%s", log)
	}
}

func TestAnotherStartTakesAKilledServersData(t *testing.T) {
	dir := filepath.Join(place(t), "data of a server")
	first := start(t, Options{Dir: dir, Password: "p@ss word/ção"})
	do(t, connect(t, first.URL("postgres")), "CREATE TABLE kept AS SELECT 7 AS n")
	_, err := Start(within(t), Require(t), Options{Dir: dir})
	oneLine(t, err, "another server uses")
	first.Kill()
	second := start(t, Options{Dir: dir, Port: first.port, Password: "p@ss word/ção"})
	if n := one[int](t, connect(t, second.URL("postgres")), "SELECT n FROM kept"); n != 7 {
		t.Errorf("%d, expected 7", n)
	}
	// Whose data another server has now must leave it alone.
	first.Kill()
	if err := first.Stop(within(t)); err != nil {
		t.Error(err)
	}
	oneLine(t, first.Restart(within(t)), "another server uses")
	oneLine(t, first.Remove(), "another server uses")
	if state(t, second.PID()) == "" {
		t.Error("the second server was ended by the first's methods")
	}
	if err := second.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data after Remove: %v, expected none", err)
	}
}

func TestAPasswordIsAskedFor(t *testing.T) {
	s := start(t, Options{Password: "s3nha"})
	if n := one[int](t, connect(t, s.URL("postgres")), "SELECT 1"); n != 1 {
		t.Errorf("select 1 is %d", n)
	}
	c, err := pgx.Connect(within(t), strings.Replace(s.URL("postgres"), "s3nha", "other", 1))
	if err == nil {
		c.Close(within(t))
		t.Error("a wrong password was let in")
	}
	left, err := filepath.Glob(filepath.Join(s.dir.path, "*password*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left of the password: %v (%v)", left, err)
	}
}

func TestRestartKeepsDataAndAddress(t *testing.T) {
	s := start(t, Options{Settings: map[string]string{"max_connections": "33"}})
	url, pid := s.URL("postgres"), s.PID()
	do(t, connect(t, url), "CREATE TABLE kept AS SELECT 7 AS n")
	for _, stopFirst := range []bool{false, true} {
		if stopFirst {
			if err := s.Stop(within(t)); err != nil {
				t.Fatal(err)
			}
			gone(t, s.PID())
		}
		if err := s.Restart(within(t)); err != nil {
			t.Fatal(err)
		}
		c := connect(t, url)
		if n := one[int](t, c, "SELECT n FROM kept"); n != 7 {
			t.Errorf("%d, expected 7", n)
		}
		if n := one[string](t, c, "SHOW max_connections"); n != "33" {
			t.Errorf("max_connections is %s, expected 33 as set", n)
		}
		if s.PID() == pid {
			t.Error("it is the same process")
		}
		if log := strings.Join(s.Log(), "\n"); strings.Contains(log, "recovery in progress") {
			t.Errorf("it was not stopped in order:\n%s", log)
		}
	}
}

func TestAPausedServerIsSilentUntilItGoesOn(t *testing.T) {
	s := start(t, Options{})
	c := connect(t, s.URL("postgres"))
	pids := append(workers(t, c), s.PID())
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if got := state(t, pid); !strings.HasPrefix(got, "T") {
			t.Errorf("process %d is in state %q, expected T", pid, got)
		}
	}
	answer := make(chan error, 1)
	go func() {
		_, err := c.Exec(context.Background(), "SELECT 1")
		answer <- err
	}()
	select {
	case err := <-answer:
		t.Errorf("a paused server answered (%v)", err)
	case <-time.After(200 * time.Millisecond):
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-answer:
		if err != nil {
			t.Errorf("the question asked meanwhile: %v, expected its answer", err)
		}
	case <-time.After(enough):
		t.Fatal("no answer after Resume")
	}
}

func TestAPausedServerCanBeEnded(t *testing.T) {
	for name, end := range map[string]func(s *Server) error{
		"Stop":    func(s *Server) error { return s.Stop(within(t)) },
		"Kill":    func(s *Server) error { s.Kill(); return nil },
		"Restart": func(s *Server) error { return s.Restart(within(t)) },
		"Remove":  func(s *Server) error { return s.Remove() },
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, Options{})
			pids := append(workers(t, connect(t, s.URL("postgres"))), s.PID())
			if err := s.Pause(); err != nil {
				t.Fatal(err)
			}
			if err := end(s); err != nil {
				t.Error(err)
			}
			gone(t, pids...)
			if name != "Restart" && s.Resume() == nil {
				t.Error("an ended server was resumed")
			}
		})
	}
}

func TestRemoveLeavesNothing(t *testing.T) {
	dir := place(t)
	t.Setenv("TMPDIR", dir)
	s := start(t, Options{})
	pids := append(workers(t, connect(t, s.URL("postgres"))), s.PID())
	if left := entries(t, dir); len(left) != 1 {
		t.Errorf("the temporary folder holds %v while the server runs, expected its folder only", left)
	}
	if err := s.Stop(within(t)); err != nil {
		t.Error(err)
	}
	gone(t, pids...)
	for range 2 { // the second does nothing
		if err := s.Remove(); err != nil {
			t.Error(err)
		}
	}
	if left := entries(t, dir); len(left) != 0 {
		t.Errorf("left in the temporary folder: %v", left)
	}
	oneLine(t, s.Restart(within(t)), "were removed")
}

func TestRemoveGivesBackAKilledServersMemory(t *testing.T) {
	s := start(t, Options{})
	c := connect(t, s.URL("postgres"))
	if kind := one[string](t, c, "SHOW dynamic_shared_memory_type"); kind != "mmap" {
		t.Errorf("dynamic shared memory is of the type %s, expected mmap, which is removed with the data", kind)
	}
	fields := strings.Fields(s.dir.lockFile()[6])
	id := fields[1]
	s.Kill()
	if !segment(t, id) {
		t.Fatalf("the system has no segment %s after the kill, expected it to be there", id)
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
	if segment(t, id) {
		t.Errorf("the shared memory %s is left", id)
	}
}

// segment tells whether the system has a segment of shared memory.
func segment(t *testing.T, id string) bool {
	t.Helper()
	out, err := exec.Command("ipcs", "-m").Output()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(strings.Fields(string(out)), id)
}
