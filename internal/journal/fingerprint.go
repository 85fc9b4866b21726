package journal

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/redact"
)

// Fingerprint is what is known of all errors with one cause. It outlives the purge: it says nothing personal
// (R24, RN-BIL-004 §10.2).
type Fingerprint struct {
	// ID is a digest over policy, reason and pattern.
	ID     string `json:"id"`
	Policy string `json:"policy"`
	// Reason is the cause: the code or rule that matched, otherwise why nothing did.
	Reason decision.Reason `json:"reason"`
	// Classification is PERMANENT where one of them was, otherwise TRANSIENT where one was: by the alphabet the first.
	Classification decision.ErrorClassification `json:"errorClassification"`
	// Pattern is the redacted error without what differs from case to case: numbers, ids, dates, and of which kind a
	// personal datum is, which its digits may decide.
	Pattern   string    `json:"pattern"`
	FirstSeen time.Time `json:"firstSeen,omitzero"`
	LastSeen  time.Time `json:"lastSeen,omitzero"`
	// Failures that were decided on; of them retried, given up by the limit, given up as permanent. These are sums that a
	// store adds up.
	Failures  int64 `json:"failures,omitempty"`
	Retried   int64 `json:"retried,omitempty"`
	Exhausted int64 `json:"exhausted,omitempty"`
	Permanent int64 `json:"permanent,omitempty"`
	// Recovered counts the episodes that ended well after a failure of this cause.
	Recovered int64 `json:"recovered,omitempty"`
	// Began is when it failed first, or again after Silence; Prior is when it had failed last by then, zero for never. News is
	// what was told of that, or of a time before; nil for nothing. They are work in hand, and no part of the audit.
	Began time.Time `json:"-"`
	Prior time.Time `json:"-"`
	News  *News     `json:"-"`
}

// maxPatternBytes of a fingerprint: what is behind it does not tell causes apart.
const maxPatternBytes = 200

// CauseOf returns the cause of a failure, with nothing counted: the rule that matched, or that none did. At a limit it is
// what failed, not the limit, so that a cause is the same below and at it. redacted is the error with nothing personal in
// it.
func CauseOf(policy, rule, redacted string) *Fingerprint {
	none := decision.ReasonUnknown
	if redacted == "" {
		none = decision.ReasonEmptyError
	}
	f := &Fingerprint{Policy: policy, Reason: cmp.Or(decision.Reason(rule), none), Pattern: pattern(storable(redacted))}
	f.ID = f.name()
	return f
}

// name returns the ID that the fingerprint must have.
func (f *Fingerprint) name() string {
	sum := sha256.Sum256(appendText(appendText(appendText(nil, f.Policy), string(f.Reason)), f.Pattern))
	return hex.EncodeToString(sum[:8])
}

// Add takes over what else is known of the same cause. Counts are not added (Sum).
func (f *Fingerprint) Add(o *Fingerprint) {
	f.Pattern = cmp.Or(f.Pattern, o.Pattern)
	f.Classification = min(f.Classification, o.Classification)
	if !o.FirstSeen.Before(f.LastSeen.Add(Silence)) {
		f.Began, f.Prior = o.FirstSeen, f.LastSeen
	}
	f.FirstSeen = slices.MinFunc([]time.Time{f.FirstSeen, o.FirstSeen}, time.Time.Compare)
	f.LastSeen = slices.MaxFunc([]time.Time{f.LastSeen, o.LastSeen}, time.Time.Compare)
}

// pattern returns s in lower case with every word that holds a digit or a redaction's mark as one #, and so those that name
// a month, a day of the week or a half of the day beside a number; cut to maxPatternBytes.
func pattern(s string) string {
	words := Words(redact.WithoutKinds(s))
	for i, word := range words {
		if strings.ContainsAny(word, "#0123456789") {
			words[i] = "#"
		}
	}
	var b strings.Builder
	for i, word := range words {
		if isOfDate(words, i) {
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

// isOfDate reports whether words[i] is a word of a date or time: a number is next to it, or next to "de" or to another
// such word beside it.
func isOfDate(words []string, i int) bool {
	if !dateWords[words[i]] {
		return false
	}
	near := func(at, step int) bool {
		if at += step; at >= 0 && at < len(words) && (words[at] == "de" || dateWords[words[at]]) {
			at += step
		}
		return at >= 0 && at < len(words) && words[at] == "#"
	}
	return near(i, -1) || near(i, 1)
}

var dateWords = func() map[string]bool {
	words := make(map[string]bool)
	for _, word := range strings.Fields(`janeiro fevereiro março marco abril maio junho julho agosto setembro outubro novembro dezembro
		jan fev mar abr mai jun jul ago set out nov dez
		january february march april may june july august september october november december feb apr aug sep sept oct dec
		segunda segunda-feira terça terça-feira terca terca-feira quarta quarta-feira quinta quinta-feira sexta sexta-feira
		sábado sabado domingo seg ter qua qui sex sab sáb dom
		monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun am pm a.m. p.m.`) {
		words[word], words[word+"."] = true, true
	}
	return words
}()

// Words returns the words of s in lower case: a date, an address and an id are one word each.
func Words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s),
		func(r rune) bool { return r <= ' ' || strings.ContainsRune(`"'(),;=<>[]{}|`, r) })
}
