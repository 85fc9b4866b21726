package deadletter

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"

	"retry-worker/internal/journal"
)

// ErrBadCursor is what a page is refused with: the cursor is no cursor, or another list's.
var ErrBadCursor = errors.New("the cursor is none of this list's: begin at the first page again")

// sealBytes of a digest tell a cursor from anything else.
const sealBytes = 8

// cursor returns the text by which a list goes on behind a place. list names it, with what it is filtered by.
func cursor(list []byte, place string) string {
	sum := sha256.Sum256(appendText(list[:len(list):len(list)], place))
	return base64.RawURLEncoding.EncodeToString(append(sum[:sealBytes], place...))
}

// placeOf returns the place that a list's cursor goes on behind, or ErrBadCursor.
func placeOf(list []byte, text string) (string, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) <= sealBytes || cursor(list, string(b[sealBytes:])) != text {
		return "", ErrBadCursor
	}
	return string(b[sealBytes:]), nil
}

// appendText appends s so that where it ends cannot be mistaken.
func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// bulkRuns names the list of all bulk runs.
var bulkRuns = []byte("bulk runs")

// RunPage cuts runs, of which one more than limit was looked for, to a page, and returns the cursor behind it; empty
// where no more follow.
func RunPage(all []journal.BulkRun, limit int) (page []journal.BulkRun, next string) {
	if len(all) <= limit {
		return all, ""
	}
	return slices.Clip(all[:limit]), cursor(bulkRuns, all[limit-1].ID)
}

// AfterRun returns the id of the bulk run that a cursor goes on behind; empty where the cursor is. The error is
// ErrBadCursor.
func AfterRun(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	return placeOf(bulkRuns, text)
}
