package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/google/uuid"

	"retry-worker/internal/decision"
	"retry-worker/internal/redact"
)

// Identity of an analysis: the same job with the same inputs has the same. Its zero value is none.
type Identity [16]byte

func (i Identity) String() string { return hex.EncodeToString(i[:]) }

// IdentityOf is the identity of a: a digest over its job, element instance, process instance, subject and
// the redacted inputs as they came, an absent retryCount not filled in.
func IdentityOf(a *Analysis) Identity {
	sum := sha256.Sum256(identityName(a))
	return Identity(sum[:len(Identity{})])
}

// identityName is what an identity is made of; changing it changes every identity and every dead letter's id.
func identityName(a *Analysis) []byte {
	name := make([]byte, 0, 192)
	for _, key := range [...]int64{a.JobKey, a.ElementInstanceKey, a.ProcessInstanceKey} {
		name = binary.BigEndian.AppendUint64(name, uint64(key))
	}
	for _, part := range [...]string{a.Subject.Tenant, a.Subject.Policy, a.Subject.ID, inputDigest(a.Failure)} {
		name = appendText(name, part)
	}
	return name
}

// inputDigest is a digest over the inputs with nothing personal in them.
func inputDigest(f *decision.Failure) string {
	inputs := make([]byte, 0, 512)
	for _, v := range f.Inputs() {
		inputs = appendText(inputs, redact.Text(string(v)))
	}
	sum := sha256.Sum256(inputs)
	return string(sum[:])
}

// appendText appends s so that where it ends cannot be mistaken.
func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// deadLetterSpace is the name space of dead letter ids; changing it changes every id.
var deadLetterSpace = uuid.MustParse("5f0c6f0e-8f0b-4a53-9f55-4d2f5b9f0c1a")

// deadLetterID names a dead letter by its analysis's identity. again tells it from those the
// identity had before: an engine that lost its data hands out its keys again, and an outcome that no job
// reports has the same identity each time.
func deadLetterID(a *Analysis, again ...int64) string {
	name := identityName(a)
	for _, n := range again {
		name = binary.AppendVarint(name, n)
	}
	return uuid.NewSHA1(deadLetterSpace, name).String()
}
