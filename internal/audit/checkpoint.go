package audit

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"retry-worker/internal/journal"
)

// Checkpoint is a link of the ledger and its hash, as somebody keeps them outside the database: in a log, on paper. Who
// has one can tell a ledger that was cut behind it or written anew. Its zero value is none.
type Checkpoint struct {
	Link int64
	Hash journal.Digest
}

// String is LINK:HASH, the hash in hexadecimal, as the log has it.
func (m Checkpoint) String() string { return journal.Head{Link: m.Link, Hash: m.Hash}.String() }

// MarshalText is String.
func (m Checkpoint) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// ParseCheckpoint reads what String wrote. Its error says what was found and expected.
func ParseCheckpoint(s string) (Checkpoint, error) {
	number, hash, _ := strings.Cut(strings.TrimSpace(s), ":")
	link, err := strconv.ParseUint(number, 10, 63)
	sum, notHex := hex.DecodeString(hash)
	m := Checkpoint{Link: int64(link)}
	if err != nil || link == 0 || notHex != nil || copy(m.Hash[:], sum) != len(sum) || len(sum) != len(m.Hash) {
		return Checkpoint{}, fmt.Errorf("%q is no head, expected LINK:HASH as a log line has it: a number from 1 on, "+
			"a colon, 64 hexadecimal digits", s)
	}
	return m, nil
}
