package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// The kinds of the suite's dead letters.
var (
	letterPolicies = []string{"tiss-submission", "whatsapp-message", "failed-job"}
	letterTeams    = []decision.Team{"cadastro", "faturamento", "ti"}
	letterReasons  = []decision.Reason{"INSURANCE_EXPIRED", "MAX_RETRIES", "TIME_LIMIT", "NOT_FOUND"}
	letterErrors   = []string{"TIMEOUT after 30 s at the gateway", "INSURANCE_EXPIRED: carteira 12345 vencida", "HTTP 404: guia não existe", "100% 'odd'"}
)

// letterNumber returns the suite's n-th dead letter, as the failure of its m-th subject.
func letterNumber(n, m int) (journal.Subject, journal.Attempt) {
	of := journal.Subject{Tenant: "<default>", Policy: letterPolicies[m%3], ID: fmt.Sprintf("CLM-%04d-%d", m, m%10)}
	reason := letterReasons[n/2%4]
	a := journal.Attempt{Episode: 1, Identity: identity(), Error: letterErrors[n%4], ReceivedAt: at(int64(n)), DeadLetter: fmt.Sprintf("%08x-0000-4000-8000-%012x", n, m),
		ProcessInstanceKey: int64(n), Decision: decision.Decision{Outcome: decision.PermanentError, ErrorClassification: decision.Permanent, Reason: reason,
			MatchedRule: string(reason), Team: letterTeams[n/3%3], AnalysedAt: at(int64(n)), FirstFailure: at(int64(n - 5))}}
	a.Context = decision.Context{{Variable: "operator", Type: decision.ContextText, Value: "Unimed"}}
	if n%3 > 0 { // some have the same deadline, or none
		a.Deadline = at(int64(3600 + n%40))
		a.Context = append(a.Context, decision.ContextValue{Variable: "amount", Type: decision.ContextMoney, Value: decision.Amount(int64(n % 7))})
	}
	a.Fingerprint = journal.CauseOf(of.Policy, a.MatchedRule, a.Error).ID
	return of, a
}

// bury records the dead letters with those numbers; of returns the subject of each.
func bury(ctx context.Context, s journal.Store, of func(n int) int, numbers ...int) error {
	for chunk := range slices.Chunk(numbers, 250) {
		var lookups []journal.Lookup
		place := map[journal.Subject]int{}
		for _, n := range chunk {
			name, _ := letterNumber(n, of(n))
			if _, known := place[name]; !known {
				place[name] = len(lookups)
				lookups = append(lookups, journal.Lookup{Subject: name})
			}
		}
		err := transact(ctx, s, lookups, func(x *transaction) {
			added := map[int]int64{}
			for _, n := range chunk {
				name, a := letterNumber(n, of(n))
				i := place[name]
				added[i]++
				a.Number = x.histories[i].Attempts + added[i]
				x.attempt(i, a)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// buried records the first n dead letters.
func buried(t *testing.T, s journal.Store, of func(n int) int, n int) {
	t.Helper()
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	testkit.Must(t, bury(t.Context(), s, of, numbers...))
}

// testLetterPages: a page is bounded, and another list's cursor is refused.
func testLetterPages(t *testing.T, s Store) {
	buried(t, s, func(n int) int { return n % 90 }, 240)
	f := journal.DeadLetterFilter{State: "all"}
	all, next, err := s.DeadLetterPage(t.Context(), f, "", 1<<40)
	if err != nil || len(all) != deadletter.MostItems || next == "" {
		t.Errorf("a page holds %d, then %q (%v); want %d and more", len(all), next, err, deadletter.MostItems)
	}
	for _, bad := range []string{"x", next + "A", "\x00"} {
		if _, _, err := s.DeadLetterPage(t.Context(), f, bad, 5); !errors.Is(err, deadletter.ErrBadCursor) {
			t.Errorf("the cursor %q is answered with %v", bad, err)
		}
	}
}

// testLetterPagesBeside reads all pages while others write: whatever was there before comes once, the newest first,
// and nothing else.
func testLetterPagesBeside(t *testing.T, s Store) {
	total, of := 300, func(n int) int { return n % 50 }
	buried(t, s, of, total)
	for _, f := range []journal.DeadLetterFilter{{}, {Team: "ti"}, {Query: "gateway"}, {Query: "CLM-00"}} {
		f.State = "all"
		want, last, listed := count(total, f), int64(total)+1, 0
		for cursor, more := "", true; more; more = cursor != "" {
			page, next, err := s.DeadLetterPage(t.Context(), f, cursor, 17)
			testkit.Must(t, err)
			for i := range page {
				if page[i].Record >= last {
					t.Fatalf("%+v: record %d comes behind %d", f, page[i].Record, last)
				}
				last = page[i].Record
			}
			cursor, listed = next, listed+len(page)
			testkit.Must(t, bury(t.Context(), s, of, total, total+1))
			total += 2
		}
		if listed != want {
			t.Errorf("%+v: %d are listed, want the %d that were there", f, listed, want)
		}
	}
}

// count returns how many of the first total dead letters have the filter's team and error.
func count(total int, f journal.DeadLetterFilter) (n int) {
	for i := range total {
		_, a := letterNumber(i, 0)
		if (f.Team == "" || f.Team == a.Decision.Team) && (f.Query != "gateway" || strings.Contains(a.Error, f.Query)) {
			n++
		}
	}
	return n
}
