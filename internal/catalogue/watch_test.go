package catalogue

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/smallfile"
)

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	mustDo(t, os.WriteFile(path, content, 0o600))
}

func mustDo(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// watch changes the file at path, or what it names, again and again, and returns what is told meanwhile: the first line of what is
// wrong, or the version that is in force then.
func watch(t *testing.T, path string, changes ...func()) (told []string, current *Catalogue) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, err := Open(path)
		mustDo(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.Run(ctx, func(next *Catalogue, err error) {
			if err != nil {
				told = append(told, strings.Split(err.Error(), "\n")[0])
			} else {
				told = append(told, next.Version)
			}
		})
		for _, change := range changes {
			change()
			time.Sleep(2 * smallfile.LookEvery)
			synctest.Wait()
		}
		current = w.Current()
	})
	return told, current
}

// TestOpen: a catalogue is changed as a whole while it is in use, or not at all, and what is wrong with it is told with its name.
func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policies.yaml")
	withRetries := func(n string) []byte {
		return bytes.Replace(defaultYAML, []byte("maxRetries: 5"), []byte("maxRetries: "+n), 1)
	}
	write(t, path, withRetries("5"))
	told, c := watch(t, path, func() { write(t, path, withRetries("2")) }, func() { write(t, path, withRetries("-2")) }, func() { write(t, path, make([]byte, 10<<20)) })
	want := []string{fmt.Sprintf("%.6x", sha256.Sum256(withRetries("2"))), "maxRetries: found -2, expected a whole number from 0 to 1000", "file: found more than 1 MiB"}
	if !slices.EqualFunc(told, want, strings.Contains) || !strings.HasPrefix(told[1], path) {
		t.Errorf("told %q, want %q", told, want)
	}
	if c.Policies["tiss-submission"].MaxRetries != 2 || c.Version != told[0] || c.Policies["no-retry"].Catalogue != c.Version {
		t.Errorf("%d retries are in force, by version %s and %s", c.Policies["tiss-submission"].MaxRetries, c.Version, c.Policies["no-retry"].Catalogue)
	}
}

// TestHolidayFileIsPartOfTheCatalogue: a changed file is taken up, and makes another version.
func TestHolidayFileIsPartOfTheCatalogue(t *testing.T) {
	dir, holidays := t.TempDir(), readFile(t, "testdata/holidays.ics")
	path := filepath.Join(dir, "policies.yaml")
	write(t, path, []byte(readFile(t, "testdata/calendars.yaml")))
	write(t, filepath.Join(dir, "holidays.ics"), []byte(holidays))
	first, err := Load(path)
	mustDo(t, err)
	told, second := watch(t, path, func() {
		write(t, filepath.Join(dir, "holidays.ics"), []byte(strings.Replace(holidays, "20260709", "20260710", 1)))
	})
	if len(told) != 1 || first.Version == second.Version {
		t.Errorf("told %q; version %s with other holidays, too", told, first.Version)
	}
}
