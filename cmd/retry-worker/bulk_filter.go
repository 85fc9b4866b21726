package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/slip"
)

// filterAll chooses every open dead letter: that must be said.
const filterAll = "all"

// filterKeys of --filter key=value.
var filterKeys = []string{"policy", "team", "reason", "fingerprint", "q", "older-than", "younger-than", "since", "until"}

// parseFilter reads what --filter chooses, as the API has it, with ages counted back from now. Its errors are wrong use.
func parseFilter(given []string, now time.Time) (map[string]string, error) {
	values := map[string]string{}
	var wrong []error
	for _, g := range given {
		key, value, pair := strings.Cut(g, "=")
		_, twice := values[key]
		switch {
		case g == filterAll:
		case !slices.Contains(filterKeys, key):
			wrong = append(wrong, unknownFilter(key))
		case !pair || strings.TrimSpace(value) == "":
			wrong = append(wrong, fmt.Errorf("--filter %s has no value, expected --filter %s=…", key, key))
		case twice:
			wrong = append(wrong, fmt.Errorf("--filter %s is given twice, expected once: all filters must fit", key))
		default:
			values[key] = value
		}
	}
	if r := values["reason"]; r != "" && !slices.Contains(decision.Reasons(), decision.Reason(r)) {
		wrong = append(wrong, fmt.Errorf("--filter reason is %q, expected a reason such as DUPLICATE_CLAIM or MAX_RETRIES", r))
	}
	if slices.Contains(given, filterAll) && len(given) > 1 {
		wrong = append(wrong, errors.New("--filter all chooses every open dead letter, expected no other --filter with it"))
	}
	p := period{values["older-than"], values["younger-than"], values["since"], values["until"]}
	since, until, err := p.bounds("filter ", now)
	if err := wrongUse(append(wrong, err)...); err != nil {
		return nil, err
	}
	for _, key := range []string{"older-than", "younger-than", "since", "until"} {
		delete(values, key)
	}
	for key, t := range map[string]time.Time{"since": since, "until": until} {
		if !t.IsZero() {
			values[key] = t.Format(time.RFC3339Nano)
		}
	}
	return values, nil
}

func unknownFilter(key string) error {
	meant := ""
	if near := slip.Nearest(key, append([]string{filterAll}, filterKeys...)); near != "" {
		meant = "; did you mean " + near + "?"
	}
	return fmt.Errorf("--filter has %q, expected all, or key=value with a key of %s%s", inertLine(key, 60), strings.Join(filterKeys, ", "), meant)
}
