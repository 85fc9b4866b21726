package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retry-worker/internal/journal"
	"retry-worker/internal/store"
	"retry-worker/internal/testkit"
)

func TestFile(t *testing.T) {
	t.Chdir(t.TempDir())
	folder, err := os.Getwd()
	testkit.Must(t, err)
	for _, url := range []string{"sqlite:journal.db", "sqlite:" + filepath.Join(folder, "a.db"), "sqlite://" + filepath.Join(folder, "b.db"), "sqlite:á ?#%20&mode=memory.db"} {
		if r, err := store.OpenReader(t.Context(), url); err == nil || r != nil {
			t.Fatalf("%s was opened for reading before it was there", url)
		}
		s, err := store.Open(t.Context(), url)
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		r, err := store.OpenReader(t.Context(), url)
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		_, _, err = r.Story(t.Context(), journal.Subject{ID: "CLM-1-1"})
		testkit.Must(t, err)
		testkit.Must(t, r.Close())
		testkit.Must(t, s.Close())
		name, _ := strings.CutPrefix(url, "sqlite:")
		if _, err := os.Stat(strings.TrimPrefix(name, "//")); err != nil {
			t.Errorf("%s made another file: %v", url, err)
		}
	}
}

func TestUnknownScheme(t *testing.T) {
	for _, url := range []string{"", "journal.db", "mysql://u:secret@h/d", "SQLITE:journal.db", "sqlite3:journal.db", ":x", "secret:secret@host"} {
		_, err := store.Open(t.Context(), url)
		_, readerErr := store.OpenReader(t.Context(), url)
		for _, err := range []error{err, readerErr} {
			if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "expected sqlite:PATH or postgres://") {
				t.Errorf("%q was answered with %v", url, err)
			} else if strings.Contains(err.Error(), "secret@") {
				t.Errorf("the password is in %v", err)
			}
		}
	}
}

func TestNoFile(t *testing.T) {
	for _, url := range []string{"sqlite:", "sqlite::memory:", "sqlite://"} {
		if _, err := store.Open(t.Context(), url); err == nil || !strings.Contains(err.Error(), "names no file") {
			t.Errorf("%q was answered with %v", url, err)
		}
	}
}
