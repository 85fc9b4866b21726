package worker

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/google/uuid"

	"retry-worker/internal/decision"
	"retry-worker/internal/redact"
)

// deadLetterSpace is the name space of dead letter ids; changing it changes every id.
var deadLetterSpace = uuid.MustParse("5f0c6f0e-8f0b-4a53-9f55-4d2f5b9f0c1a")

// deadLetterID names the dead letter by its analysis's identity: job, element instance, process
// instance, subject and the redacted inputs as they came. A redelivered job gets the same id; an
// incident resolved with corrected variables another.
func deadLetterID(j *Job, d *decision.Decision, f *decision.Failure) string {
	var name []byte
	for _, key := range [...]int64{j.Key, j.ElementInstanceKey, j.ProcessInstanceKey} {
		name = binary.BigEndian.AppendUint64(name, uint64(key))
	}
	for _, part := range [...]string{j.TenantID, d.Policy, d.SubjectID, inputDigest(f)} {
		name = binary.AppendUvarint(name, uint64(len(part)))
		name = append(name, part...)
	}
	return uuid.NewSHA1(deadLetterSpace, name).String()
}

// inputDigest is a digest over the inputs with nothing personal in them.
func inputDigest(f *decision.Failure) string {
	h := sha256.New()
	for _, v := range f.Inputs() {
		text := redact.Text(string(v))
		h.Write(binary.AppendUvarint(nil, uint64(len(text))))
		h.Write([]byte(text))
	}
	return string(h.Sum(nil))
}
