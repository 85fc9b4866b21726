package review

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// states that a list can be asked for.
var states = []string{"", "open", "reprocessing", "discarded", "recovered", "all"}

// fingerprintForm is a cause's id (journal.Fingerprint.ID).
var fingerprintForm = regexp.MustCompile(`^[0-9a-f]{16}$`)

// CheckFilter is f without what stands around a query, or the *Refusal of what no dead letter could fit.
func CheckFilter(f journal.DeadLetterFilter) (journal.DeadLetterFilter, error) {
	f.Query = strings.TrimSpace(f.Query)
	switch {
	case !slices.Contains(states, f.State):
		return f, refuse(InvalidState, "state is %.60q, expected open, reprocessing, discarded, recovered or all", f.State)
	case f.Reason != "" && !slices.Contains(decision.Reasons(), f.Reason):
		return f, refuse(InvalidReason, "reason is %.60q, expected a reason code such as TIMEOUT or MAX_RETRIES", f.Reason)
	case f.Fingerprint != "" && !fingerprintForm.MatchString(f.Fingerprint):
		return f, refuse(InvalidFingerprint, "fingerprint is %.60q, expected 16 digits of 0-9 and a-f as a group has them", f.Fingerprint)
	case !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until):
		return f, refuse(InvalidPeriod, "since is %s and until %s, expected since to be the earlier", decision.Instant(f.Since), decision.Instant(f.Until))
	case utf8.RuneCountInString(f.Query) > maxQuery:
		return f, refuse(InvalidQuery, "q has more than %d characters; search for the beginning of an id or some words of the error", maxQuery)
	}
	return f, nil
}

// CheckLimit is limit, or DefaultItems where it is 0; the *Refusal of one that is not 1 to MostItems.
func CheckLimit(limit int) (int, error) {
	if limit == 0 {
		return DefaultItems, nil
	}
	if limit < 1 || limit > MostItems {
		return 0, refuse(InvalidLimit, "limit is %d, expected 1 to %d", limit, MostItems)
	}
	return limit, nil
}

// checkList is what a list is asked for, put in order.
func checkList(f journal.DeadLetterFilter, limit int) (journal.DeadLetterFilter, int, error) {
	limit, err := CheckLimit(limit)
	if err == nil {
		f, err = CheckFilter(f)
	}
	return f, limit, err
}

// unlisted is why the store gives no list, in words.
func unlisted(err error) error {
	switch {
	case errors.Is(err, journal.ErrBadCursor):
		return BadCursor(err)
	case errors.Is(err, journal.ErrBadFilter):
		return &Refusal{Code: InvalidQuery, Message: err.Error(), cause: err}
	default:
		return fmt.Errorf("list dead letters: %w", err)
	}
}

// BadCursor is the refusal of a cursor that is none of a list's.
func BadCursor(cause error) *Refusal {
	return &Refusal{Code: InvalidCursor, Message: "the cursor is not one that an answer gave as next; leave it out for the first page", cause: cause}
}

// Groups are the causes of the dead letters that f lets through, the one with the most first, from behind the cursor on: at
// most limit, 1 to MostItems, or DefaultItems where it is 0. next is empty where no more follow. A period may be refused:
// groups are kept up to date, and not by the hour.
func (s *Service) Groups(ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int) (groups []journal.DeadLetterGroup, next string, err error) {
	f, limit, err = checkList(f, limit)
	if err != nil {
		return nil, "", err
	}
	groups, next, err = s.letters.DeadLetterGroups(ctx, f, cursor, limit)
	if errors.Is(err, journal.ErrBadFilter) && (!f.Since.IsZero() || !f.Until.IsZero()) {
		return nil, "", &Refusal{Code: InvalidPeriod, Message: "groups are not kept by the hour: leave since and until out, or list the dead letters", cause: err}
	}
	if err != nil {
		return nil, "", unlisted(err)
	}
	return groups, next, nil
}
