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

// Fingerprint is what is known of all errors with one cause. It outlives purges, as it holds nothing personal (R24,
// RN-BIL-004 §10.2).
type Fingerprint struct {
	// ID is a digest over policy, reason and pattern.
	ID     string `json:"id"`
	Policy string `json:"policy"`
	// Reason is the code or rule that matched, or why none did.
	Reason decision.Reason `json:"reason"`
	// Classification is the alphabetically first of all errors': PERMANENT before TRANSIENT.
	Classification decision.ErrorClassification `json:"errorClassification"`
	// Pattern is the redacted error without what differs from case to case: numbers, ids, dates and the kinds of
	// redacted data, which may depend on digits.
	Pattern   string    `json:"pattern"`
	FirstSeen time.Time `json:"firstSeen,omitzero"`
	LastSeen  time.Time `json:"lastSeen,omitzero"`
	// Failures counts the failures; of these, Retried those retried, Exhausted those given up at a limit and Permanent
	// those given up as permanent. A store adds them up from sums.
	Failures  int64 `json:"failures,omitempty"`
	Retried   int64 `json:"retried,omitempty"`
	Exhausted int64 `json:"exhausted,omitempty"`
	Permanent int64 `json:"permanent,omitempty"`
	// Recovered counts the episodes that succeeded after a failure of this cause.
	Recovered int64 `json:"recovered,omitempty"`
	// Began is its first failure, or the first after Silence; Prior is the last failure before that, zero for none.
	// News is the latest announcement of the cause; nil for none. They are no part of the audit.
	Began time.Time `json:"-"`
	Prior time.Time `json:"-"`
	News  *News     `json:"-"`
}

// maxPatternBytes bounds a pattern: the text after it does not tell causes apart.
const maxPatternBytes = 200

// CauseOf returns the cause of a failure, without counts. rule is the rule that matched, empty for none; a limit is no
// rule, so that a cause is the same below and at it. redacted is the error with nothing personal in it.
func CauseOf(policy, rule, redacted string) *Fingerprint {
	none := decision.ReasonUnknown
	if redacted == "" {
		none = decision.ReasonEmptyError
	}
	f := &Fingerprint{Policy: policy, Reason: cmp.Or(decision.Reason(rule), none), Pattern: pattern(storable(redacted))}
	f.ID = f.name()
	return f
}

// name returns the ID that follows from policy, reason and pattern.
func (f *Fingerprint) name() string {
	sum := sha256.Sum256(appendText(appendText(appendText(nil, f.Policy), string(f.Reason)), f.Pattern))
	return hex.EncodeToString(sum[:8])
}

// Add merges what o knows of the same cause. Counts are sums, and not added here.
func (f *Fingerprint) Add(o *Fingerprint) {
	f.Pattern = cmp.Or(f.Pattern, o.Pattern)
	f.Classification = min(f.Classification, o.Classification)
	if !o.Began.Before(f.LastSeen.Add(Silence)) {
		f.Began, f.Prior = o.Began, f.LastSeen
	}
	f.FirstSeen = slices.MinFunc([]time.Time{f.FirstSeen, o.FirstSeen}, time.Time.Compare)
	f.LastSeen = slices.MaxFunc([]time.Time{f.LastSeen, o.LastSeen}, time.Time.Compare)
}

// pattern returns s in lower case, cut to maxPatternBytes. Every word with a digit or a redaction's mark becomes #, and
// so do months, weekdays, am and pm beside a number.
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

// isOfDate reports whether words[i] belongs to a date or time: a number is next to it, or one word further if "de" or
// another date word is between.
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

// Words returns the words of s in lower case. A date, an address and an id are one word each.
func Words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s),
		func(r rune) bool { return r <= ' ' || strings.ContainsRune(`"'(),;=<>[]{}|`, r) })
}
