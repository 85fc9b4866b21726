package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit/wait"
)

func TestMain(m *testing.M) { harness.Main(m) }

// count is what a query gives, on a connection of its own.
func count(t *testing.T, url, query string) (n int) {
	t.Helper()
	c, err := pgx.Connect(wait.Context(t), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(wait.Context(t))
	if err := c.QueryRow(wait.Context(t), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAServerIsKilledPausedAndEndedWithAllItStarted(t *testing.T) {
	s := New(t, Options{Password: "s3cr3t"}) // as the user nobody where this is root: initdb refuses to be root
	url, err := s.CreateDatabase(wait.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.execute(wait.Context(t), "CREATE ROLE kept"); err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func() error{
		"killed":  func() error { s.Kill(); return nil },
		"stopped": func() error { return s.Stop(wait.Context(t)) },
		"paused and killed": func() error {
			err := s.Pause()
			s.Kill()
			return err
		},
		"paused and stopped": func() error {
			if err := s.Pause(); err != nil {
				return err
			}
			return s.Stop(wait.Context(t))
		},
	} {
		if err := end(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if left := harness.RunningIn(s.folder.Path); len(left) > 0 {
			t.Errorf("%s: processes %v are left", name, left)
		}
		if err := s.Restart(wait.Context(t)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if count(t, url, "SELECT count(*) FROM pg_roles WHERE rolname = 'kept'") != 1 {
			t.Errorf("%s: what was committed is lost", name)
		}
	}
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	count(t, url, "SELECT 1")
}

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	var first string
	t.Run("first", func(t *testing.T) { first = Database(t) })
	if second := Database(t); second == first || count(t, second, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") != 0 {
		t.Errorf("%s after %s", second, first)
	}
	if _, err := pgx.Connect(wait.Context(t), first); err == nil {
		t.Error("the first test's database is still there")
	}
}
