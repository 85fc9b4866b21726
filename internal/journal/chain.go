package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// Digest is a SHA-256.
type Digest [sha256.Size]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Link is one commit in the ledger: a hash over the link before it and the digests of the records that
// came with it. Records may be purged; their digests stay, and the chain still holds.
type Link struct {
	// Number from 1, without a gap.
	Number int64
	// At is when it was written, in milliseconds, by the clock of who wrote it; no earlier than the link before it, so
	// that the links tell where the records since an instant begin.
	At time.Time
	// First is the number of its first record; there are as many as Digests.
	First   int64
	Digests []Digest
	// Answered are runs of records of attempts whose answer the engine took.
	Answered []Run
	// Hash of the whole link and of the Hash before it.
	Hash Digest
}

// After completes the link that follows head.
func (l Link) After(head Head) Link {
	l.Number, l.First = head.Link+1, head.Record+1
	if l.At.Before(head.At) {
		l.At = head.At
	}
	l.Hash = l.HashAfter(head.Hash)
	return l
}

// HashAfter is what Hash must be where the link before it has the hash prev.
func (l *Link) HashAfter(prev Digest) Digest {
	b := make([]byte, 0, len(prev)+4*binary.MaxVarintLen64+len(l.Digests)*sha256.Size)
	b = append(b, prev[:]...)
	for _, n := range [...]int64{l.Number, l.At.UnixMilli(), l.First, int64(len(l.Digests))} {
		b = binary.AppendVarint(b, n)
	}
	for i := range l.Digests {
		b = append(b, l.Digests[i][:]...)
	}
	for _, r := range l.Answered {
		b = binary.AppendVarint(binary.AppendVarint(b, r.First), r.Last)
	}
	return sha256.Sum256(b)
}

// DigestEntry returns the digest of everything a record says.
func DigestEntry(n Entry) Digest {
	b := append(make([]byte, 0, 2048), 'e', 1) // the version of the format
	b = binary.AppendVarint(binary.AppendVarint(b, n.Record), Milli(n.At))
	for _, s := range [...]string{n.Subject.Tenant, n.Subject.Policy, n.Subject.ID, string(n.Kind), n.Kept()} {
		b = appendText(b, s)
	}
	return sha256.Sum256(b)
}

// Milli is t as it is stored: milliseconds since 1970, and 0 for the zero time.
func Milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// CeilMilli is the first whole millisecond at or after t.
func CeilMilli(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }

// FromMilli is the time that Milli gave, in UTC.
func FromMilli(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
