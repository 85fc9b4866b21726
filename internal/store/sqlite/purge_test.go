package sqlite

import (
	"path/filepath"
	"testing"

	"retry-worker/internal/store/storetest"
	"retry-worker/internal/testkit"
)

func TestErasedFromTheFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	db := opened(t, path)
	storetest.RunErased(t, db, func() (content string) {
		for _, statement := range []string{"VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"} {
			testkit.Must(t, execute(t.Context(), path, statement))
		}
		for _, file := range folder(t, path) {
			content += file
		}
		return content
	})
}
