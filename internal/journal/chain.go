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

// Link is one commit in the ledger: a hash over the previous link and the digests of the commit's records. Records may
// be purged; their digests stay, and the chain still holds.
type Link struct {
	// Number counts from 1 without a gap.
	Number int64
	// At is when it was written, in milliseconds, by the writer's clock. It is never earlier than the previous link's,
	// so that links show where the records since an instant begin.
	At time.Time
	// First is the number of its first record; it has len(Digests) records.
	First   int64
	Digests []Digest
	// Answered are the records of attempts whose answer the engine took.
	Answered []Run
	// Message is the number of its first message of the outbox, Messages are its messages' digests. LetGo are the
	// messages that may be removed.
	Message  int64
	Messages []Digest
	LetGo    []Run
	// Hash covers the whole link and the previous link's Hash.
	Hash Digest
}

// After returns the link, completed as the one that follows head.
func (l Link) After(head Head) Link {
	l.Number, l.First, l.Message = head.Link+1, head.Record+1, head.Message+1
	if l.At.Before(head.At) {
		l.At = head.At
	}
	l.Hash = l.HashAfter(head.Hash)
	return l
}

// HashAfter returns what Hash must be if the previous link has the hash prev.
func (l *Link) HashAfter(prev Digest) Digest {
	b := make([]byte, 0, len(prev)+8*binary.MaxVarintLen64+(len(l.Digests)+len(l.Messages))*sha256.Size)
	b = append(b, prev[:]...)
	add := func(all ...int64) {
		for _, n := range all {
			b = binary.AppendVarint(b, n)
		}
	}
	add(l.Number, l.At.UnixMilli(), l.First, int64(len(l.Digests)))
	for i := range l.Digests {
		b = append(b, l.Digests[i][:]...)
	}
	for _, r := range l.Answered {
		if r.Until != 0 {
			add(-r.Until) // no run begins below 1
		}
		add(r.First, r.Last)
	}
	if len(l.Messages)+len(l.LetGo) > 0 { // most links of a journal without events have none
		add(0, l.Message, int64(len(l.Messages)))
		for i := range l.Messages {
			b = append(b, l.Messages[i][:]...)
		}
		for _, r := range l.LetGo {
			add(r.First, r.Last)
		}
	}
	return sha256.Sum256(b)
}

// Digest returns the digest of the record and its subject's key.
func (e *Entry) Digest() Digest {
	b := append(make([]byte, 0, 2048), 'e', 1) // the version of the format
	b = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(b, e.Record), e.Key), Milli(e.At))
	for _, s := range [...]string{e.Subject.Tenant, e.Subject.Policy, e.Subject.ID, string(e.Kind), e.Body} {
		b = appendText(b, s)
	}
	return sha256.Sum256(b)
}

// Digest returns the digest of the message and its sequence.
func (m *Message) Digest() Digest {
	b := append(make([]byte, 0, 2048), 'm', 1) // the version of the format
	b = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(b, m.Sequence), m.Subject), Milli(m.At))
	for _, s := range [...]string{m.ID, m.Queue, m.Key, m.Type, m.Body} {
		b = appendText(b, s)
	}
	return sha256.Sum256(b)
}

// Seal numbers and signs the messages, and completes the link that follows head unless it is empty. It may be called
// again.
func (c *Changes) Seal(head Head, at time.Time) {
	l, gone := &c.Link, &Runs{all: c.Link.LetGo}
	l.Messages = nil
	for i := range c.Outbox {
		c.Outbox[i].Sequence = head.Message + 1 + int64(i)
		l.Messages = append(l.Messages, c.Outbox[i].Digest())
	}
	for _, n := range c.Published {
		if n > 0 && n <= head.Message {
			gone.Add(Run{First: n, Last: n})
		}
	}
	if l.LetGo = gone.All(); !l.empty() {
		l.At = at.UTC().Truncate(time.Millisecond)
		*l = l.After(head)
	}
}

// empty reports whether the link covers nothing.
func (l *Link) empty() bool { return len(l.Digests)+len(l.Answered)+len(l.Messages)+len(l.LetGo) == 0 }

// Milli returns t as it is stored: milliseconds since 1970, or 0 for the zero time.
func Milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// CeilMilli returns the first whole millisecond at or after t.
func CeilMilli(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }

// FromMilli returns the time that Milli gave, in UTC.
func FromMilli(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
