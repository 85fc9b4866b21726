package worker

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"retry-worker/internal/decision"
	"retry-worker/internal/redact"
)

const (
	// maxMatchedBytes of what a rule matched are kept or logged, redacted.
	maxMatchedBytes = 200
	// maxSearchedBytes of an error are redacted to see whether what a rule matched far behind may be shown.
	maxSearchedBytes = 16_000
	// harmless is how much text names nobody: a status, that came beside the error.
	harmless = 3
)

// shownText returns what a rule matched in f's error as a sink may have it. line is that error, redacted: what is not
// found in it as it is was part of something personal (an e-mail address holds many a word), and is left out.
func shownText(f *decision.Failure, matched, line string) string {
	if len(matched) <= harmless {
		return matched
	}
	text := redact.Line(matched, maxMatchedBytes)
	shown := strings.TrimSuffix(text, "…")
	if strings.Contains(line, shown) {
		return text
	}
	if len(f.Error) > maxErrorBytes && strings.Contains(redact.Line(f.Error, maxSearchedBytes), shown) {
		return text // behind the cut
	}
	return ""
}

// Evidence is a piece of evidence in an error, as people may see it.
type Evidence struct {
	Rank int    `json:"rank"`
	Rule string `json:"rule"`
	Text string `json:"text"`
	// Lost says why it does not count; empty for what decided.
	Lost string `json:"lost"`
}

// Explain returns what speaks for a dry run's decision, what decided first; nothing for what is rejected.
func Explain(policies decision.Policies, policy string, v decision.Variables) []Evidence {
	p, f, rejection := readDry(policies, policy, v)
	if rejection != nil {
		return nil
	}
	line := redact.Line(f.Error, maxErrorBytes)
	all := []Evidence{}
	for _, e := range p.Evidence(&f) {
		all = append(all, Evidence{int(e.Rank), e.Name, shownText(&f, e.Text, line), e.Lost})
	}
	return all
}

// WithEvidence returns a dry run's flat object with the evidence in it; as it is where there is none.
func WithEvidence(flat json.RawMessage, all []Evidence) json.RawMessage {
	if all == nil {
		return flat
	}
	list, err := json.Marshal(all)
	if err != nil {
		panic(err) // cannot be: it holds numbers and texts only
	}
	return object(slices.Clone(flat[:len(flat)-1])).raw("evidence", string(list)).end()
}

// WithoutEvidence takes out what WithEvidence put in, at the end. Within a text the quotation marks would be escaped.
func WithoutEvidence(flat json.RawMessage) json.RawMessage {
	before, _, found := bytes.Cut(flat, []byte(`,"evidence":`))
	if !found {
		return flat
	}
	return object(slices.Clone(before)).end()
}
