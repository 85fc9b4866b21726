package journal

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
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
