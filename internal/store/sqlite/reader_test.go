package sqlite

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"retry-worker/internal/journal"
)

func TestReaderMakesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	_, err := OpenReader(t.Context(), path)
	wantRefused(t, err, path, "does not exist")
	if left := folder(t, path); len(left) != 0 {
		t.Errorf("it made %v", left)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = OpenReader(t.Context(), path)
	wantRefused(t, err, path, "is empty")

	path = filled(t, false)
	before := folder(t, path)
	r, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	wantAttempts(t, r, claim(7), 1)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if !maps.Equal(before, folder(t, path)) {
		t.Error("reading changed the folder")
	}
}

// TestReaderAfterCrash reads what lies in the write-ahead log alone, and leaves it there.
func TestReaderAfterCrash(t *testing.T) {
	path := filled(t, true)
	before := folder(t, path)
	r, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	wantAttempts(t, r, claim(7), 1)
	wantAttempts(t, r, claim(1999), 1)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	after := folder(t, path)
	for _, name := range []string{"journal.db", "journal.db-wal"} {
		if before[name] != after[name] {
			t.Errorf("reading changed %s", name)
		}
	}
	if head := headOf(t, opened(t, path)); head.Record != 2000 {
		t.Errorf("the journal ends at record %d afterwards, want 2000", head.Record)
	}
}

func wantAttempts(t *testing.T, r journal.Reader, s journal.Subject, want int64) {
	t.Helper()
	if n, err := r.CountAttempts(t.Context(), s); err != nil || n != want {
		t.Errorf("a reader counts %d attempts (%v), want %d", n, err, want)
	}
}
