package chaos_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"testing"

	"retry-worker/internal/testkit"
)

// tornTail tells whether a write-ahead log of SQLite ends with pages of a transaction that was not committed: its
// frames carry the log's own salts, and none of them the mark of a commit.
func tornTail(t *testing.T, path string) bool {
	t.Helper()
	const headBytes, frameBytes = 32, 24
	log, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	testkit.Must(t, err)
	defer log.Close()
	var head [headBytes]byte
	if _, err := log.ReadAt(head[:], 0); err != nil {
		return false // not even the head was written
	}
	page := int64(binary.BigEndian.Uint32(head[8:]))
	torn := false
	for at := int64(headBytes); ; at += frameBytes + page {
		var frame [frameBytes]byte
		if _, err := log.ReadAt(frame[:], at); err != nil || [8]byte(frame[8:16]) != [8]byte(head[16:24]) {
			return torn
		}
		torn = binary.BigEndian.Uint32(frame[4:]) == 0
	}
}
