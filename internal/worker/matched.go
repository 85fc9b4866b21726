package worker

import (
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

// matchedText is what f's rule matched, as a sink may have it. line is f's error, redacted: what is not found there as
// it is was part of something personal (an e-mail address holds many a word), and is left out.
func matchedText(f *decision.Failure, line string) string {
	matched := f.Match.Text
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
