package sqlite

import (
	"path/filepath"
	"testing"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// Pages are in the block, where each takes what it needs: a page that did not fit into its place would be elsewhere.
func TestPagesArePacked(t *testing.T) {
	db, err := Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tls := libc.NewTLS()
	defer tls.Close()
	header, err := headerBytes(tls)
	if err != nil || header < 1 || header > pageBytes/8 {
		t.Fatalf("a page has a header of %d bytes (%v), expected some hundred", header, err)
	}
	if used, _ := status(t, tls, sqlite3.SQLITE_STATUS_PAGECACHE_USED); used == 0 {
		t.Error("no page is in the block")
	}
	if _, largest := status(t, tls, sqlite3.SQLITE_STATUS_PAGECACHE_SIZE); largest > int64(pageBytes+header) {
		t.Errorf("a page needed %d bytes, its place has %d", largest, pageBytes+header)
	}
}

// status is one of SQLite's counts, and the highest that it was.
func status(t *testing.T, tls *libc.TLS, of int32) (now, highest int64) {
	t.Helper()
	counts, err := outside(tls, int(2*unsafe.Sizeof(now)))
	if err != nil {
		t.Fatal(err)
	}
	defer libc.Xfree(tls, counts)
	second := counts + unsafe.Sizeof(now)
	if code := sqlite3.Xsqlite3_status64(tls, of, counts, second, 0); code != sqlite3.SQLITE_OK {
		t.Fatalf("SQLite's status %d: code %d", of, code)
	}
	return libc.AtomicLoadPInt64(counts), libc.AtomicLoadPInt64(second)
}
