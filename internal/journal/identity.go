package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/google/uuid"

	"retry-worker/internal/redact"
)

// Identity of an analysis: the same job with the same inputs has the same. Its zero value is none.
type Identity [16]byte

func (i Identity) String() string { return hex.EncodeToString(i[:]) }

// IdentityOf is the identity of a: a digest over its job, element instance, process instance, subject and
// the redacted inputs as they came, an absent retryCount not filled in.
func IdentityOf(a *Analysis) Identity {
	name := make([]byte, 0, 512)
	for _, key := range [...]int64{a.JobKey, a.ElementInstanceKey, a.ProcessInstanceKey} {
		name = binary.BigEndian.AppendUint64(name, uint64(key))
	}
	for _, part := range [...]string{a.Subject.Tenant, a.Subject.Policy, a.Subject.ID} {
		name = appendText(name, part)
	}
	for _, input := range a.Failure.Inputs() {
		name = appendText(name, redact.Text(string(input)))
	}
	sum := sha256.Sum256(name)
	return Identity(sum[:len(Identity{})])
}

// appendText appends s so that where it ends cannot be mistaken.
func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// deadLetterSpace is the name space of dead letter ids; changing it changes every id.
var deadLetterSpace = uuid.MustParse("5f0c6f0e-8f0b-4a53-9f55-4d2f5b9f0c1a")

// deadLetterID names a dead letter by its analysis's identity. again counts from 1 where the identity had
// one before: an engine that lost its data hands out its keys again.
func deadLetterID(i Identity, again int64) string {
	name := i[:]
	if again > 0 {
		name = binary.AppendVarint(name[:len(name):len(name)], again)
	}
	return uuid.NewSHA1(deadLetterSpace, name).String()
}
