package scenarios

import (
	"regexp"
	"testing"
)

var uuid = regexp.MustCompile(`^"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"$`)

func expectUUID(t *testing.T, value string) {
	t.Helper()
	if !uuid.MatchString(value) {
		t.Errorf("deadLetterId is %s, expected a name-based UUID", value)
	}
}

func TestPermanentErrorIsReviewedAndDiscarded(t *testing.T) {
	teams := map[string]string{ // R21
		"INVALID_PATIENT_DATA - data de nascimento ausente": "cadastro",
		"INSURANCE_EXPIRED":                          "cadastro",
		"Authorization denied by the operator":       "faturamento",
		"DUPLICATE_CLAIM (answered after a TIMEOUT)": "faturamento", // R2
		"INVALID_PROCEDURE_CODE 99999999":            "faturamento",
	}
	eachProtocol(t, func(_ *testing.T, s *world) {
		keys := make(map[string]int64)
		var all []int64
		for text := range teams {
			c := failing(text)
			c.Review.Discard = true
			keys[text] = s.submit(s.claimID(len(all)), c, nil)
			all = append(all, keys[text])
		}
		s.awaitEnded(all...)
		letters := make(map[string]bool)
		for text, key := range keys {
			want := map[string]string{
				"shouldRetry": "false", "retryCount": "0", "maxRetries": "5", "retryReason": `"Permanent error, not retried"`,
				"errorClassification": `"PERMANENT"`, "originalError": jsonOf(text), "retryPolicy": `"tiss-submission"`,
				"responsibleTeam": jsonOf(teams[text]),
			}
			i := s.instance(key)
			review := i.reviews[len(i.reviews)-1]
			s.expectKnown(text+": the review", review, want)
			s.expectVariables(i, want)
			s.expectVariables(i, map[string]string{"reviewDecision": `"discard"`, "submissionError": jsonOf(text)})
			expectUUID(s.t, i.variables["deadLetterId"])
			letters[i.variables["deadLetterId"]] = true
			s.expectEnd(submissions, key, "discarded", 1)
		}
		if len(letters) != len(teams) {
			s.t.Errorf("%d dead letters for %d claims: %v", len(letters), len(teams), letters)
		}
		n := len(teams)
		s.expectCounts(counts{"submit-claim error thrown": n, "analyze-retry error thrown": n, "retry-review completed": n, "processes completed": n})
		s.done("permanent error, discarded", "%d instances", n)
	})
}
