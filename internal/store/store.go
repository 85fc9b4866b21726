// Package store opens the journal's store by its URL: a file of this machine, or a PostgreSQL server.
package store

import (
	"context"
	"fmt"
	"strings"

	"retry-worker/internal/access"
	"retry-worker/internal/audit"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/store/postgres"
	"retry-worker/internal/store/sqlite"
)

// Store keeps the journal until it is closed.
type Store interface {
	Reader
	journal.Store
	journal.PurgeStore
	journal.Outbox
	deadletter.BulkStore
	deadletter.NoticeStore
	access.EndedSessions
	audit.Rebuilder
}

// Reader reads the journal until it is closed.
type Reader interface {
	journal.Reader
	deadletter.Reader
	journal.Archive
	journal.Holding
	journal.Statistics
	audit.Journal
	// Close ends what runs and frees everything; further calls of other methods fail.
	Close() error
}

// Open opens the store at url for writing, makes it where there is none, and brings its schema up to date:
// sqlite:PATH is a file, for one process at a time; postgres://… a server, for many. Its errors are one line
// that says what to do.
func Open(ctx context.Context, url string) (Store, error) {
	return at(url, func(path string) (Store, error) { return sqlite.Open(ctx, path) },
		func() (Store, error) { return postgres.Open(ctx, url) })
}

// OpenReader opens the store at url for reading, beside the workers that write it. It makes nothing and
// changes nothing; a file that does not exist is an error.
func OpenReader(ctx context.Context, url string) (Reader, error) {
	return at(url, func(path string) (Reader, error) { return sqlite.OpenReader(ctx, path) },
		func() (Reader, error) { return postgres.OpenReader(ctx, url) })
}

// Inspect says where the store at url is, whether it may be written, and what room there is, for people. It makes nothing
// and changes nothing. Its errors are as Open's.
func Inspect(ctx context.Context, url string) (string, error) {
	return at(url, sqlite.Inspect, func() (string, error) { return postgres.Inspect(ctx, url) })
}

// at returns what the file or the server gives that url names; nothing beside an error. Some write two slashes before a
// file's path.
func at[T any](url string, file func(path string) (T, error), server func() (T, error)) (given T, err error) {
	switch scheme, rest, _ := strings.Cut(url, ":"); scheme {
	case "sqlite":
		given, err = file(strings.TrimPrefix(rest, "//"))
	case "postgres", "postgresql":
		given, err = server()
	default:
		err = unknown(url)
	}
	if err != nil {
		given = *new(T) // and no nil pointer
	}
	return given, err
}

// unknown names the scheme alone: the rest may hold a password.
func unknown(url string) error {
	scheme, _, ok := strings.Cut(url, ":")
	if !ok || len(scheme) > 20 {
		scheme = "none"
	}
	return fmt.Errorf("the database URL has the scheme %q; expected sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE",
		scheme)
}
