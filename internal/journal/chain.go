package journal

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"retry-worker/internal/decision"
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
	return digest('e', e.Record, e.Key, e.At, e.Subject.Tenant, e.Subject.Policy, e.Subject.ID, string(e.Kind), e.Body)
}

// Digest returns the digest of the message and its sequence.
func (m *Message) Digest() Digest {
	return digest('m', m.Sequence, m.Subject, m.At, m.ID, m.Queue, m.Key, m.Type, m.Body)
}

func digest(kind byte, number, subject int64, at time.Time, texts ...string) Digest {
	b := append(make([]byte, 0, 2048), kind, 1) // the version of the format
	b = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(b, number), subject), Milli(at))
	for _, s := range texts {
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

// IdentityKey keys the identities of one journal. Without the key nobody can guess personal data from a hash.
type IdentityKey [sha256.Size]byte

// NewIdentityKey returns a random key.
func NewIdentityKey() (k IdentityKey) {
	_, _ = rand.Read(k[:]) // never fails
	return k
}

// Start returns the head of an empty journal with that key. Its hash, which the chain begins with, vouches for the key.
func (k *IdentityKey) Start() Head {
	return Head{Hash: sha256.Sum256(append([]byte{'k', 1}, k[:]...))} // with the version of the format
}

// Identity identifies an analysis: the same job with the same inputs has the same identity. Its zero value is none.
type Identity [16]byte

func (i Identity) String() string { return hex.EncodeToString(i[:]) }

// Kept returns the identity as records have it, in base64.
func (i Identity) Kept() string { return base64.RawURLEncoding.EncodeToString(i[:]) }

// MarshalText implements encoding.TextMarshaler by Kept.
func (i Identity) MarshalText() ([]byte, error) { return []byte(i.Kept()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (i *Identity) UnmarshalText(text []byte) error {
	if n := base64.RawURLEncoding.EncodedLen(len(i)); len(text) != n {
		return base64.CorruptInputError(min(len(text), n))
	}
	_, err := base64.RawURLEncoding.Decode(i[:], text)
	return err
}

const (
	// identityBegins is how many base64 characters of each identity are kept in Seen: 48 bits.
	identityBegins = 8
	// mostSeen is how many identities of a subject are kept in Seen; older ones are looked up in its records.
	mostSeen = 64
)

// add appends the identity's beginning to seen, and drops the oldest if there are too many.
func (i Identity) add(seen string) string {
	seen += base64.RawURLEncoding.EncodeToString(i[:identityBegins*6/8])
	return seen[max(len(seen)-mostSeen*identityBegins, 0):]
}

// MayBe reports whether an attempt of the subject may have the identity. Only false is certain.
func (s *SubjectState) MayBe(i Identity) bool {
	begins := i.add("")
	for seen := s.Seen; seen != ""; seen = seen[identityBegins:] {
		if strings.HasPrefix(seen, begins) {
			return true
		}
	}
	return s.Attempts*identityBegins > int64(len(s.Seen))
}

// Identity returns the identity of a: an HMAC over job, element instance, process instance, subject and inputs. The
// inputs are as they came: unredacted, so that a better redaction changes no identity, and without a default
// retryCount.
func (k *IdentityKey) Identity(a *Analysis) Identity { return k.identity(a, a.Failure.Inputs()) }

func (k *IdentityKey) identity(a *Analysis, inputs []decision.Value) (i Identity) {
	name := make([]byte, 0, 1024)
	for _, key := range [...]int64{a.JobKey, a.ElementInstanceKey, a.ProcessInstanceKey} {
		name = binary.BigEndian.AppendUint64(name, uint64(key))
	}
	for _, part := range [...]string{a.Subject.Tenant, a.Subject.Policy, a.Subject.ID} {
		name = appendText(name, part)
	}
	for _, v := range inputs {
		name = appendText(name, string(v))
	}
	sum := hmac.New(sha256.New, k[:])
	sum.Write(name)
	copy(i[:], sum.Sum(nil))
	return i
}

// recallWritten sets h.Same to the last attempt if a differs from it only by the retryCount that the attempt's answer
// wrote. A final answer sets the variables and then throws the error: the job brings them along if the worker was
// killed in between, or if nobody caught the error. Once a person decided on the dead letter, the answer counts as
// taken.
func (h *History) recallWritten(a *Analysis, k *IdentityKey) {
	l, f := h.Last, a.Failure
	if l == nil || h.Same != nil && h.Same.Number >= l.Number || l.JobKey != a.JobKey || l.Decision.ShouldRetry() ||
		!f.HasRetryCount || f.RetryCount != l.Decision.RetryCount {
		return
	}
	given := []decision.Value{"", "null"}
	if l.GivenCount >= 0 {
		given = []decision.Value{decision.Value(strconv.FormatInt(l.GivenCount, 10))}
	}
	isRecorded := func(count decision.Value) bool { return k.identity(a, f.InputsWith(count)) == l.Identity }
	if !slices.ContainsFunc(given, isRecorded) {
		return
	}
	h.Same, h.SameDeadLetter = l, ""
	if d := h.DeadLetter; d != nil && d.ID == l.DeadLetter {
		h.SameDeadLetter = d.State
	}
	h.SameAnswered = h.SameDeadLetter != DeadLetterOpen
}

// appendText appends s behind its length, so that its end is unambiguous.
func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// deadLetterSpace is the name space of dead letters' ids; changing it changes every id.
var deadLetterSpace = uuid.MustParse("5f0c6f0e-8f0b-4a53-9f55-4d2f5b9f0c1a")

// deadLetterID returns the id of the dead letter that the attempt creates; empty if it is retried.
func (a *Attempt) deadLetterID() string {
	switch {
	case a.ShouldRetry():
		return ""
	case a.Revision > 0:
		return a.Identity.deadLetterID(a.Number, a.Revision)
	case a.Number > 1: // an engine may reuse keys of an attempt that is purged
		return a.Identity.deadLetterID(a.Number)
	}
	return a.Identity.deadLetterID()
}

// deadLetterID returns a dead letter's id, from its analysis's identity. again tells it from earlier ones of that
// identity: an engine that lost its data reuses keys, and an outcome that no job reports always has the same.
func (i Identity) deadLetterID(again ...int64) string {
	name := i[:]
	for _, n := range again {
		name = binary.AppendVarint(name, n)
	}
	return uuid.NewSHA1(deadLetterSpace, name).String()
}
