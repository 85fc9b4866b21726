// Package store opens the journal's store by its URL: a file on this machine, or a PostgreSQL server.
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
	audit.Journal
	// Close closes the store; later calls of other methods fail.
	Close() error
}

// Open opens the store at url for writing, and creates it if there is none: sqlite:PATH is a file, for one process at a
// time; postgres://… a server, for many. Its errors are one line that says what to do.
func Open(ctx context.Context, url string) (Store, error) {
	return at(url, func(path string) (Store, error) { return sqlite.Open(ctx, path) },
		func() (Store, error) { return postgres.Open(ctx, url) })
}

// OpenReader opens the store at url for reading, while workers write it. It creates and changes nothing; a file that
// does not exist is an error.
func OpenReader(ctx context.Context, url string) (Reader, error) {
	return at(url, func(path string) (Reader, error) { return sqlite.OpenReader(ctx, path) },
		func() (Reader, error) { return postgres.OpenReader(ctx, url) })
}

// Inspect returns a sentence about the store at url: where it is, that it may be written, and how much room there is.
// It creates and changes nothing. Its errors are like Open's.
func Inspect(ctx context.Context, url string) (string, error) {
	return at(url, sqlite.Inspect, func() (string, error) { return postgres.Inspect(ctx, url) })
}

// at calls file or server, whichever url names; on an error it returns the zero T. A file's path may follow two
// slashes.
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
		given = *new(T) // not an interface that holds a nil pointer
	}
	return given, err
}

// unknown returns an error that names only the URL's scheme, as the rest may hold a password.
func unknown(url string) error {
	scheme, _, ok := strings.Cut(url, ":")
	if !ok || len(scheme) > 20 {
		scheme = "none"
	}
	return fmt.Errorf("the database URL has the scheme %q; expected sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE",
		scheme)
}
