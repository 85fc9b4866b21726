package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"sync"
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
	// At is when it was written, in milliseconds, by the clock of who wrote it.
	At time.Time
	// First is the number of its first record; there are as many as Digests.
	First   int64
	Digests []Digest
	// Hash of the whole link and of the Hash before it.
	Hash Digest
}

// After completes the link that follows head.
func (l Link) After(head Head) Link {
	l.Number, l.First = head.Link+1, head.Record+1
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
	return sha256.Sum256(b)
}

// DigestAttempt is the digest of everything an attempt says about its subject. One that names no catalogue and no
// matched text is of the first version of the schema, and keeps the digest it got then.
func DigestAttempt(s Subject, a *Attempt) Digest {
	d := &a.Decision
	later := d.Catalogue != "" || d.MatchedText != ""
	e := newEncoder('a', 1+byte(truth(later)))
	e.numbers(a.Record, a.Number, a.Revision, a.Episode, a.JobKey, a.ElementInstanceKey, a.ProcessInstanceKey,
		a.AnalysedCount, a.GivenCount, int64(a.Took/time.Microsecond),
		d.RetryCount, d.MaxRetries, int64(d.Backoff.Delay), int64(d.Backoff.Raw), int64(math.Float64bits(d.Backoff.JitterRatio)),
		truth(d.Backoff.AtMaximum), truth(d.CountAssumed))
	e.times(a.ReceivedAt, d.AnalysedAt, d.NextRetryTime, d.FirstFailure)
	e.texts(s.Tenant, s.Policy, s.ID, string(a.Identity[:]), string(a.Rule), a.Error, a.DeadLetter, string(d.Outcome),
		string(d.ErrorClassification), string(d.Reason), d.MatchedRule, d.RetryReason, string(d.Team))
	if later {
		e.texts(d.Catalogue, d.MatchedText)
	}
	return e.digest()
}

// DigestEntry is the digest of everything an entry says.
func DigestEntry(n *Entry) Digest {
	e := newEncoder('e', 1)
	e.numbers(n.Record)
	e.times(n.At)
	e.texts(n.Subject.Tenant, n.Subject.Policy, n.Subject.ID, string(n.Kind), n.Body)
	return e.digest()
}

// encoder writes fields one after the other so that different records never read the same.
type encoder struct{ b []byte }

// encoders are used again and again: every decision needs one for a microsecond.
var encoders = sync.Pool{New: func() any { return &encoder{make([]byte, 0, 2048)} }}

// newEncoder begins a record; its kind and the version of the kind's format keep those of different shape apart.
func newEncoder(kind, version byte) *encoder {
	e, _ := encoders.Get().(*encoder) // nothing else is in there
	e.b = append(e.b[:0], kind, version)
	return e
}

// digest ends the record; the encoder is somebody else's then.
func (e *encoder) digest() Digest {
	sum := sha256.Sum256(e.b)
	encoders.Put(e)
	return sum
}

func (e *encoder) numbers(ns ...int64) {
	for _, n := range ns {
		e.b = binary.AppendVarint(e.b, n)
	}
}

// times in milliseconds, which is as exact as they are stored; a zero time is the smallest number.
func (e *encoder) times(ts ...time.Time) {
	for _, t := range ts {
		e.b = binary.AppendVarint(e.b, Milli(t))
	}
}

func (e *encoder) texts(ss ...string) {
	for _, s := range ss {
		e.b = appendText(e.b, s)
	}
}

// Milli is t as it is stored: milliseconds since 1970, and 0 for the zero time.
func Milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// FromMilli is the time that Milli gave, in UTC.
func FromMilli(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
