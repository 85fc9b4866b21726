package deadletter

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"

	"github.com/google/uuid"
)

// seen is what a plan found: so many open dead letters with a record of at most through, and the sum of their records. A
// run that is started by it has the id run, so a second start finds the first.
type seen struct {
	through, n, sum int64
	run             uuid.UUID
}

const (
	seenBytes  = 3*8 + len(uuid.UUID{})
	tokenBytes = seenBytes + 16
)

// token names what was seen for a command. It holds no secret: it is a check against what has changed, and no right.
func (s seen) token(c *BulkCommand) string {
	b := make([]byte, 0, tokenBytes)
	for _, n := range [...]int64{s.through, s.n, s.sum} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	b = append(b, s.run[:]...)
	return base64.RawURLEncoding.EncodeToString(append(b, seal(b, c)...))
}

// seal ties what was seen to the command that it was seen for. The reason and the name are not part of it.
func seal(seen []byte, c *BulkCommand) []byte {
	f := &c.Filter
	named, _ := json.Marshal([]any{ // of strings, numbers and truths, which cannot fail
		"bulk plan 2", seen, c.Action, f.Policy, f.Team, f.Reason, f.Fingerprint, f.Query, f.Since.UnixMilli(), f.Until.UnixMilli(),
		c.Force, c.Fresh, c.When, c.PerMinute,
	})
	sum := sha256.Sum256(named)
	return sum[:tokenBytes-seenBytes]
}

// readToken is what was seen for c; the *review.Refusal of what is no token of it.
func readToken(token string, c *BulkCommand) (seen, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) != tokenBytes || base64.RawURLEncoding.EncodeToString(b) != token { // line breaks are passed over
		return seen{}, refuse(InvalidPlan, "the token is not one that a plan gave; plan first, and start with the plan's token")
	}
	if string(b[seenBytes:]) != string(seal(b[:seenBytes], c)) {
		return seen{}, refuse(InvalidPlan, "the token is of another plan: action, filter, forceRetry, fresh, when and perMinute must be those that were planned")
	}
	at := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[8*i:])) }
	return seen{at(0), at(1), at(2), uuid.UUID(b[3*8 : seenBytes])}, nil
}
