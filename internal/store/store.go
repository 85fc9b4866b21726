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
	scheme, rest, _ := strings.Cut(url, ":")
	switch scheme {
	case "sqlite":
		s, err := sqlite.Open(ctx, path(rest))
		if err != nil {
			return nil, err // and no nil pointer
		}
		return s, nil
	case "postgres", "postgresql":
		s, err := postgres.Open(ctx, url)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	return nil, unknown(url)
}

// OpenReader opens the store at url for reading, beside the workers that write it. It makes nothing and
// changes nothing; a file that does not exist is an error.
func OpenReader(ctx context.Context, url string) (Reader, error) {
	scheme, rest, _ := strings.Cut(url, ":")
	switch scheme {
	case "sqlite":
		r, err := sqlite.OpenReader(ctx, path(rest))
		if err != nil {
			return nil, err
		}
		return r, nil
	case "postgres", "postgresql":
		r, err := postgres.OpenReader(ctx, url)
		if err != nil {
			return nil, err
		}
		return r, nil
	}
	return nil, unknown(url)
}

// Inspect says where the store at url is, whether it may be written, and what room there is, for people. It makes nothing
// and changes nothing. Its errors are as Open's.
func Inspect(ctx context.Context, url string) (string, error) {
	scheme, rest, _ := strings.Cut(url, ":")
	switch scheme {
	case "sqlite":
		return sqlite.Inspect(path(rest))
	case "postgres", "postgresql":
		return postgres.Inspect(ctx, url)
	}
	return "", unknown(url)
}

// path of a file behind sqlite:, where some write two slashes before it.
func path(rest string) string { return strings.TrimPrefix(rest, "//") }

// unknown names the scheme alone: the rest may hold a password.
func unknown(url string) error {
	scheme, _, ok := strings.Cut(url, ":")
	if !ok || len(scheme) > 20 {
		scheme = "none"
	}
	return fmt.Errorf("the database URL has the scheme %q; expected sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE",
		scheme)
}
