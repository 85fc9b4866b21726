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

	"github.com/google/uuid"

	"retry-worker/internal/decision"
)

// IdentityKey keys the identities of one journal: inputs that hold personal data cannot be guessed from what they hash
// to by whoever does not have it.
type IdentityKey [sha256.Size]byte

// NewIdentityKey returns a key that nobody can guess.
func NewIdentityKey() (k IdentityKey) {
	_, _ = rand.Read(k[:]) // never fails
	return k
}

// Identity of an analysis: the same job with the same inputs has the same. Its zero value is none.
type Identity [16]byte

func (i Identity) String() string { return hex.EncodeToString(i[:]) }

// Kept returns the identity as records have it, in base64.
func (i Identity) Kept() string { return base64.RawURLEncoding.EncodeToString(i[:]) }

// MarshalText is Kept.
func (i Identity) MarshalText() ([]byte, error) { return []byte(i.Kept()), nil }

// UnmarshalText reads what MarshalText wrote.
func (i *Identity) UnmarshalText(text []byte) error {
	if n := base64.RawURLEncoding.EncodedLen(len(i)); len(text) != n {
		return base64.CorruptInputError(min(len(text), n))
	}
	_, err := base64.RawURLEncoding.Decode(i[:], text)
	return err
}

const (
	// identityBegins is how many characters of an identity are kept to know it by, in base64: 48 bits.
	identityBegins = 8
	// mostSeen identities of a subject are kept to know them by; further ones are sought in its records.
	mostSeen = 64
)

// add returns seen with the identity's beginning, and without the oldest where there are too many.
func (i Identity) add(seen string) string {
	seen += base64.RawURLEncoding.EncodeToString(i[:identityBegins*6/8])
	return seen[max(len(seen)-mostSeen*identityBegins, 0):]
}

// MayBe reports whether an attempt of the subject may have the identity: false is certain.
func (s *SubjectState) MayBe(i Identity) bool {
	begins := i.add("")
	for seen := s.Seen; seen != ""; seen = seen[identityBegins:] {
		if strings.HasPrefix(seen, begins) {
			return true
		}
	}
	return s.Attempts*identityBegins > int64(len(s.Seen))
}

// Identity returns that of a: an HMAC over its job, element instance, process instance, subject and the inputs as they
// came, unredacted (a better redaction must not change it), an absent retryCount not filled in.
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

// recallWritten makes the last attempt the Same of a where a differs from it in nothing but the retryCount that the
// attempt's own answer wrote: a final answer sets the variables and then throws the error, so that the job brings them
// along when the worker was killed in between, or when nobody caught the error. Whether the engine took the answer
// matters only once a person decided on the dead letter; it is assumed then.
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
	if !slices.ContainsFunc(given, func(count decision.Value) bool { return k.identity(a, f.InputsWith(count)) == l.Identity }) {
		return
	}
	h.Same, h.SameDeadLetter = l, ""
	if d := h.DeadLetter; d != nil && d.ID == l.DeadLetter {
		h.SameDeadLetter = d.State
	}
	h.SameAnswered = h.SameDeadLetter != DeadLetterOpen
}

// appendText appends s so that where it ends cannot be mistaken.
func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// deadLetterSpace is the name space of dead letter ids; changing it changes every id.
var deadLetterSpace = uuid.MustParse("5f0c6f0e-8f0b-4a53-9f55-4d2f5b9f0c1a")

// deadLetterID names the dead letter that is born with the attempt; empty where it is retried.
func (a *Attempt) deadLetterID() string {
	switch {
	case a.ShouldRetry():
		return ""
	case a.Revision > 0:
		return a.Identity.deadLetterID(a.Number, a.Revision)
	case a.Number > 1: // an engine may have given its keys anew since; the attempt that had them may be purged
		return a.Identity.deadLetterID(a.Number)
	}
	return a.Identity.deadLetterID()
}

// deadLetterID names a dead letter by its analysis's identity. again tells it from those the
// identity had before: an engine that lost its data hands out its keys again, and an outcome that no job
// reports has the same identity each time.
func (i Identity) deadLetterID(again ...int64) string {
	name := i[:]
	for _, n := range again {
		name = binary.AppendVarint(name, n)
	}
	return uuid.NewSHA1(deadLetterSpace, name).String()
}
