package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"retry-worker/internal/decision"
)

// Fingerprint is what is known of all errors with one cause. It outlives the purge: it says nothing personal
// (R24, RN-BIL-004 §10.2).
type Fingerprint struct {
	// ID is a digest over policy, reason and pattern.
	ID     string
	Policy string
	// Reason is the cause: the code or rule that matched, otherwise why nothing did.
	Reason         decision.Reason
	Classification decision.ErrorClassification
	// Pattern is the redacted error without what differs from case to case: numbers, ids, dates.
	Pattern             string
	FirstSeen, LastSeen time.Time
	// Failures that were decided on; of them retried, given up by the limit, given up as permanent.
	Failures, Retried, Exhausted, Permanent int64
	// Recovered counts the episodes that ended well after a failure of this cause.
	Recovered int64
}

// maxPatternBytes of a fingerprint: what is behind it does not tell causes apart.
const maxPatternBytes = 200

// FingerprintOf is the fingerprint of an attempt, with nothing counted.
func FingerprintOf(policy string, a *Attempt) Fingerprint {
	f := Fingerprint{Policy: policy, Reason: causeOf(a), Classification: a.Decision.ErrorClassification, Pattern: pattern(a.Error)}
	name := appendText(appendText(appendText(nil, f.Policy), string(f.Reason)), f.Pattern)
	sum := sha256.Sum256(name)
	f.ID = hex.EncodeToString(sum[:8])
	return f
}

// causeOf an attempt: the rule that matched; where none did, why. At a limit it is what failed, not the limit, so that
// a cause is the same below and at it.
func causeOf(a *Attempt) decision.Reason {
	d := &a.Decision
	switch {
	case d.MatchedRule != "":
		return decision.Reason(d.MatchedRule)
	case d.Outcome != decision.MaxRetriesExceeded:
		return d.Reason
	case a.Error == "":
		return decision.ReasonEmptyError
	default:
		return decision.ReasonUnknown
	}
}

// pattern is s in lower case with every word that holds a digit as one #, cut to maxPatternBytes.
func pattern(s string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(strings.ToLower(s), separates) {
		if strings.ContainsAny(word, "0123456789") {
			word = "#"
		}
		if b.Len()+1+len(word) > maxPatternBytes {
			break
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
	}
	return b.String()
}

// separates tells what stands between words: a date, an address and an id are one word each.
func separates(r rune) bool {
	return r <= ' ' || strings.ContainsRune(`"'(),;=<>[]{}|`, r)
}

// countFingerprint adds one failure to its cause.
func (b *batch) countFingerprint(policy string, a *Attempt) {
	f := b.fingerprint(policy, a)
	f.Failures++
	switch a.Decision.Outcome {
	case decision.Retry:
		f.Retried++
	case decision.PermanentError:
		f.Permanent++
	default:
		f.Exhausted++
	}
}

// recountFingerprint is for a failure that was counted as retried, and is given up by the limit after all.
func (b *batch) recountFingerprint(policy string, a *Attempt) {
	f := b.fingerprint(policy, a)
	f.Retried--
	f.Exhausted++
}

// fingerprint is the batch's own count of a's cause.
func (b *batch) fingerprint(policy string, a *Attempt) *Fingerprint {
	f := FingerprintOf(policy, a)
	f.FirstSeen, f.LastSeen = b.milli(), b.milli()
	for i := range b.changes.Fingerprints {
		if b.changes.Fingerprints[i].ID == f.ID {
			return &b.changes.Fingerprints[i]
		}
	}
	b.changes.Fingerprints = append(b.changes.Fingerprints, f)
	return &b.changes.Fingerprints[len(b.changes.Fingerprints)-1]
}
