package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/postgres"
)

// shelf keeps journals of one kind.
type shelf interface {
	// fresh is the URL of a journal that does not exist yet.
	fresh(ctx context.Context) (url string, err error)
	// drop removes a journal that is closed.
	drop(ctx context.Context, url string) error
	// size of a closed journal in bytes.
	size(ctx context.Context, url string) (int64, error)
	// cpu that its server has used so far.
	cpu() time.Duration
	// close removes everything.
	close() error
}

// kind of store that is measured.
type kind struct {
	name, about string
	shelf
}

// openKinds are those that can be measured here; missing says why one cannot.
func openKinds(ctx context.Context, names []string) (all []*kind, missing []string, err error) {
	for _, name := range names {
		var k *kind
		switch name {
		case "sqlite":
			k, err = openFiles()
		case "postgres":
			k, err = openServer(ctx)
		default:
			err = fmt.Errorf("store %q: expected sqlite or postgres", name)
		}
		if install, ok := errors.AsType[harness.Missing](err); ok {
			missing = append(missing, fmt.Sprintf("NOT RUN: PostgreSQL (%v) — install with: apt-get install -y postgresql", install))
			continue
		}
		if err != nil {
			return all, missing, err
		}
		all = append(all, k)
	}
	return all, missing, nil
}

// files are SQLite journals in a folder of their own.
type files struct {
	dir  string
	made int
}

func openFiles() (*kind, error) {
	at, err := place()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(at, "retry-worker-bench-journal")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the journals: %w", err)
	}
	f := &files{dir: dir}
	once, err := syncTime(dir)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	about := fmt.Sprintf("full durability, %s (an append with fsync: %.2f ms)", medium(dir), once.Seconds()*1000)
	return &kind{"SQLite", about, f}, nil
}

// medium is where a folder is; one that keeps nothing is shouted.
func medium(dir string) string {
	kind := fileSystem(dir)
	if inMemory(kind) {
		return "NOT ON A DISK but " + kind
	}
	return "on " + kind
}

func (f *files) fresh(context.Context) (string, error) {
	f.made++
	return "sqlite:" + filepath.Join(f.dir, strconv.Itoa(f.made)+".db"), nil
}

func (f *files) drop(_ context.Context, url string) error {
	path := url[len("sqlite:"):]
	all, err := filepath.Glob(path + "*")
	for _, name := range all {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

func (f *files) size(_ context.Context, url string) (int64, error) {
	info, err := os.Stat(url[len("sqlite:"):]) // the log beside it was copied into it and removed
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f *files) cpu() time.Duration { return 0 }

func (f *files) close() error { return os.RemoveAll(f.dir) }

// server is a real PostgreSQL with fsync on.
type server struct {
	*postgres.Server
	names map[string]string // of databases, by URL
}

func openServer(ctx context.Context) (*kind, error) {
	install, err := postgres.Provide(ctx, nil)
	if err != nil {
		return nil, err
	}
	s, err := postgres.Start(ctx, install, postgres.Options{})
	if err != nil {
		return nil, err
	}
	v := &server{s, map[string]string{}}
	var dir, fsync string
	err = v.ask(ctx, s.URL("postgres"), "SELECT current_setting('data_directory'), current_setting('fsync')", &dir, &fsync)
	if err != nil {
		return nil, errors.Join(err, v.close())
	}
	return &kind{"PostgreSQL", fmt.Sprintf("%s, fsync %s, %s", install.Version, fsync, medium(dir)), v}, nil
}

func (s *server) ask(ctx context.Context, url, query string, into ...any) error {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("ask PostgreSQL: %w", err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	if err := c.QueryRow(ctx, query).Scan(into...); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("ask PostgreSQL: %w", err)
	}
	return nil
}

func (s *server) fresh(ctx context.Context) (string, error) {
	name := "bench" + strconv.Itoa(len(s.names))
	url, err := s.CreateDatabase(ctx, name)
	s.names[url] = name
	return url, err
}

func (s *server) drop(ctx context.Context, url string) error {
	return s.DropDatabase(ctx, s.names[url])
}

func (s *server) size(ctx context.Context, url string) (size int64, err error) {
	return size, s.ask(ctx, url, "SELECT pg_database_size(current_database())", &size)
}

func (s *server) cpu() time.Duration { return childrenCPU(s.PID()) }

func (s *server) close() error { return s.Remove() }
