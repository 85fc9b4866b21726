package postgres

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	realserver "retry-worker/e2e/harness/postgres"
	"retry-worker/internal/journal"
	"retry-worker/internal/store/sqlstore"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

const password = "s3cr3t:de/Maria"

// with is the address with another user, and with settings of the session.
func with(t *testing.T, address, user string, settings ...string) string {
	t.Helper()
	u, err := url.Parse(address)
	testkit.Must(t, err)
	if user != "" {
		u.User = url.UserPassword(user, password)
	}
	q := u.Query()
	for i := 0; i < len(settings); i += 2 {
		q.Set(settings[i], settings[i+1])
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// wantRefusal has Open and OpenReader fail alike.
func wantRefusal(t *testing.T, address string, kind journal.Kind, says string) {
	t.Helper()
	db, err := Open(wait.Context(t), address)
	if err == nil {
		_ = db.Close()
	}
	wantKind(t, err, kind, says)
	r, errReader := OpenReader(wait.Context(t), address)
	if errReader == nil {
		_ = r.Close()
	}
	wantKind(t, errReader, kind, says)
	for _, err := range []error{err, errReader} {
		if err != nil && (strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "Maria")) {
			t.Errorf("the error %q names the password", err)
		}
	}
}

func TestAnAddressThatIsWrongIsRefused(t *testing.T) {
	for _, address := range []string{
		"postgres://worker:" + password + "@db:5432/journal", // not encoded
		"postgres://worker:s3cr3t@db:port/journal",
		"postgres://worker:s3cr3t@db/journal?sslmode=Maria",
		"postgres://worker:s3cr3t@db/journal?connect_timeout=soon",
		"host=db password=s3cr3t port=Maria",
	} {
		wantRefusal(t, address, journal.Invalid, "postgres://user:password@host:port/database")
	}
}

func TestAServerThatIsNotThereMayCome(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer l.Close() // it takes connections and says nothing, as a server that hangs
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	_ = closed.Close()
	for _, host := range []string{l.Addr().String(), closed.Addr().String()} {
		wantRefusal(t, "postgres://worker:s3cr3t@"+host+"/journal?sslmode=disable&connect_timeout=1", journal.Unavailable, "open the journal in PostgreSQL")
	}
}

func TestAnAccountThatIsWrongIsRefused(t *testing.T) {
	s := realserver.New(t, realserver.Options{Password: password})
	good, err := s.CreateDatabase(wait.Context(t))
	testkit.Must(t, err)
	wantRefusal(t, with(t, good, "stranger"), journal.Invalid, "check the user and the password")
	wantRefusal(t, strings.Replace(good, "s3cr3t", "S3cr3t", 1), journal.Invalid, "check the user and the password")
	wantRefusal(t, strings.Replace(good, "/test_", "/other_", 1), journal.Invalid, "create the database")
	open(t, good)
}

func TestAUserWhoMayNotCreateTablesIsToldSo(t *testing.T) {
	address := realserver.Database(t)
	admin := connect(t, address)
	do(t, admin, "DROP ROLE IF EXISTS limited")
	do(t, admin, "CREATE ROLE limited LOGIN PASSWORD '"+password+"'")
	t.Cleanup(func() {
		_, _ = admin.Exec(context.Background(), "DROP OWNED BY limited")
		if _, err := admin.Exec(context.Background(), "DROP ROLE limited"); err != nil {
			t.Error(err)
		}
	})
	db, err := Open(wait.Context(t), with(t, address, "limited"))
	if err == nil {
		_ = db.Close()
	}
	wantKind(t, err, journal.Invalid, "GRANT CREATE, USAGE ON SCHEMA public")
	inspect := func(who, want string) {
		said, err := Inspect(wait.Context(t), with(t, address, who))
		if !strings.Contains(fmt.Sprint(said, err), want) {
			t.Errorf("inspected by %q: %s, %v; want %s", who, said, err, want)
		}
	}
	inspect("limited", "GRANT CREATE, USAGE ON SCHEMA public")
	inspect("", "may write, the database has")
	open(t, address)
	inspect("limited", "may not write the journal's tables")
	_, err = OpenReader(wait.Context(t), with(t, address, "limited"))
	wantKind(t, err, journal.Invalid, "GRANT SELECT ON ALL TABLES")
	do(t, admin, "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO limited")
	if _, err := record(wait.Context(t), open(t, with(t, address, "limited")), ask("CLM-GRANT-1", "job")); err != nil {
		t.Errorf("with tables that are there and rights on them: %v", err)
	}
	inspect("limited", "may write, the database has")
}

func TestAServerThatIsNotFitIsRefused(t *testing.T) {
	for _, wrong := range []struct {
		server server
		says   string
	}{
		{server{number: 140012, version: "14.12", encoding: "UTF8"}, "PostgreSQL 14.12; 15 or newer"},
		{server{number: 150001, encoding: "LATIN1"}, "encoding is LATIN1"},
	} {
		wantKind(t, wrong.server.fit(), journal.Invalid, wrong.says)
	}
	if err := (&server{number: 150000, encoding: "UTF8"}).fit(); err != nil {
		t.Errorf("PostgreSQL 15.0: %v", err)
	}
	address := realserver.Database(t)
	admin := connect(t, address)
	do(t, admin, "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
	defer do(t, admin, "DROP DATABASE latin WITH (FORCE)")
	latin, err := url.Parse(address)
	testkit.Must(t, err)
	latin.Path = "/latin"
	wantRefusal(t, latin.String(), journal.Invalid, "encoding is LATIN1")
}

func TestADatabaseThatIsReadOnlyIsToBeReadAlone(t *testing.T) {
	address := realserver.Database(t)
	writable := with(t, address, "", "target_session_attrs", "read-write") // as a refusal of a standby advises
	_, err := record(wait.Context(t), open(t, writable), ask("CLM-RO-1", "job"))
	testkit.Must(t, err)
	readOnly := with(t, address, "", "default_transaction_read_only", "on")
	_, err = Open(wait.Context(t), readOnly)
	wantKind(t, err, journal.Invalid, "default_transaction_read_only")
	r, err := OpenReader(wait.Context(t), readOnly)
	testkit.Must(t, err)
	defer r.Close()
	if st, _, err := r.Story(wait.Context(t), testkit.Subject("tiss-submission", "CLM-RO-1")); len(st.Attempts) != 1 || err != nil {
		t.Errorf("%d attempts, error %v; expected 1", len(st.Attempts), err)
	}
}

// TestAStandbyIsToBeReadAlone turns a server into a standby, by the file that makes it one, and back.
func TestAStandbyIsToBeReadAlone(t *testing.T) {
	s, address := ownServer(t)
	_, err := record(wait.Context(t), open(t, address), ask("CLM-STANDBY-1", "job"))
	testkit.Must(t, err)
	testkit.Must(t, s.Stop(wait.Context(t)))
	signal := filepath.Join(s.DataDir(), "standby.signal")
	testkit.Must(t, os.WriteFile(signal, nil, 0o644))
	testkit.Must(t, s.Restart(wait.Context(t)))
	_, err = Open(wait.Context(t), address)
	wantKind(t, err, journal.Unavailable, "standby")
	_, err = Inspect(wait.Context(t), address)
	wantKind(t, err, journal.Unavailable, "name the primary")
	r, err := OpenReader(wait.Context(t), address)
	testkit.Must(t, err)
	defer r.Close()
	if st, _, err := r.Story(wait.Context(t), testkit.Subject("tiss-submission", "CLM-STANDBY-1")); len(st.Attempts) != 1 || err != nil {
		t.Errorf("%d attempts, error %v; expected 1", len(st.Attempts), err)
	}
}

func TestAReaderMakesNothingAndChangesNothing(t *testing.T) {
	address := realserver.Database(t)
	_, err := OpenReader(wait.Context(t), address)
	wantKind(t, err, journal.Invalid, "no journal in it yet")
	watch := connect(t, address)
	if n := one[int64](t, watch, "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'"); n != 0 {
		t.Errorf("%d tables were made", n)
	}
	open(t, address)
	r, err := OpenReader(wait.Context(t), address)
	testkit.Must(t, err)
	defer r.Close()
	err = r.Snapshot(wait.Context(t), func(tx sqlstore.Querier) error {
		rows, err := tx.QueryContext(wait.Context(t), "UPDATE ledger_head SET link = 1 RETURNING link")
		if err == nil {
			_ = rows.Close()
		}
		return err
	})
	if err == nil {
		t.Error("a reader's connection could write")
	}
}

func TestACommitIsOnDiskWhateverTheDatabaseIsSetTo(t *testing.T) {
	address := realserver.Database(t)
	admin := connect(t, address)
	name := one[string](t, admin, "SELECT current_database()")
	do(t, admin, "ALTER DATABASE "+name+" SET synchronous_commit = off")
	db := open(t, address)
	var set string
	if err := db.writer.QueryRowContext(wait.Context(t), "SHOW synchronous_commit").Scan(&set); err != nil || set != "on" {
		t.Errorf("synchronous_commit is %q, error %v; expected on", set, err)
	}
}
