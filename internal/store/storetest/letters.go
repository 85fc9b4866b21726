package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// Kinds of the suite's dead letters.
var (
	letterPolicies = []string{"tiss-submission", "whatsapp-message", "failed-job"}
	letterTeams    = []decision.Team{"cadastro", "faturamento", "ti"}
	letterReasons  = []decision.Reason{"INSURANCE_EXPIRED", "MAX_RETRIES", "TIME_LIMIT", "NOT_FOUND"}
	letterErrors   = []string{"TIMEOUT after 30 s at the gateway", "INSURANCE_EXPIRED: carteira 12345 vencida", "HTTP 404: guia não existe", "100% 'odd'"}
)

// letterNumber is the n-th dead letter of the suite, of the m-th subject.
func letterNumber(n, m int) (journal.Subject, journal.Attempt, journal.DeadLetter) {
	of := journal.Subject{Tenant: "<default>", Policy: letterPolicies[m%3], ID: fmt.Sprintf("CLM-%04d-%d", m, m%10)}
	class := decision.Permanent
	a := journal.Attempt{Episode: 1, Identity: identity(), Error: letterErrors[n%4], ReceivedAt: at(int64(n)), DeadLetter: fmt.Sprintf("%08x-0000-4000-8000-%012x", n, m),
		Decision: decision.Decision{Outcome: decision.PermanentError, ErrorClassification: class, Reason: letterReasons[n/2%4], MatchedRule: string(letterReasons[n/2%4]),
			AnalysedAt: at(int64(n)), FirstFailure: at(int64(n - 5))}}
	d := journal.DeadLetter{ID: a.DeadLetter, State: journal.DeadLetterStates()[n*7%5], Episode: 1, Outcome: decision.PermanentError, Reason: a.Decision.Reason,
		Team: letterTeams[n/3%3], RetryCount: int64(n % 6), MaxRetries: 5, ProcessInstanceKey: int64(n), CreatedAt: at(int64(n)), ChangedAt: at(int64(n))}
	return of, a, d
}

// bury records the dead letters with those numbers, each of the subject that of gives.
func bury(ctx context.Context, s journal.Store, of func(n int) int, numbers ...int) error {
	for chunk := range slices.Chunk(numbers, 100) {
		var lookups []journal.Lookup
		at := map[journal.Subject]int{}
		for _, n := range chunk {
			name, _, _ := letterNumber(n, of(n))
			if _, known := at[name]; !known {
				at[name] = len(lookups)
				lookups = append(lookups, journal.Lookup{Subject: name})
			}
		}
		_, err := transact(ctx, s, lookups, func(x *transaction) {
			for _, n := range chunk {
				name, a, d := letterNumber(n, of(n))
				x.bury(at[name], name, a, d)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// bury records a failure that is given up.
func (x *transaction) bury(i int, of journal.Subject, a journal.Attempt, d journal.DeadLetter) {
	key, h := x.key(i, of), &x.histories[i]
	h.Attempts++
	a.Number = h.Attempts
	saved := x.attempt(key, of, a)
	d.Record = saved.Record
	x.Episodes = append(x.Episodes, journal.KeyedEpisode{Key: key, Episode: journal.Episode{Number: 1, State: journal.Dead, DeadLetter: d.ID,
		FirstFailure: a.Decision.FirstFailure, OpenedAt: a.Decision.FirstFailure}})
	f := journal.FingerprintOf(of.Policy, saved)
	f.FirstSeen, f.LastSeen, f.Failures = a.Decision.AnalysedAt, a.Decision.AnalysedAt, 1
	x.Fingerprints = append(x.Fingerprints, f)
	x.DeadLetters = append(x.DeadLetters, journal.KeyedDeadLetter{Key: key, Policy: of.Policy, DeadLetter: d, Fingerprint: f.ID})
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func buried(t *testing.T, s journal.Store, of func(n int) int, n int) {
	t.Helper()
	if err := bury(t.Context(), s, of, upTo(n)...); err != nil {
		t.Fatal(err)
	}
}

// wantLetters walks in pages of several sizes, and wants just those that passes lets through, the newest first.
func wantLetters(t *testing.T, s journal.DeadLetterReader, of func(n int) int, total int, f journal.DeadLetterFilter,
	passes func(of journal.Subject, a *journal.Attempt, d *journal.DeadLetter) bool) {
	t.Helper()
	var want []string
	for n := total - 1; n >= 0; n-- {
		if of, a, d := letterNumber(n, of(n)); passes(of, &a, &d) {
			want = append(want, d.ID)
		}
	}
	for _, limit := range []int{3, 50, 200} {
		all, err := walk(t.Context(), s, f, limit)
		if err != nil {
			t.Fatalf("%+v: %v", f, err)
		}
		got := make([]string, len(all))
		for i := range all {
			got[i] = all[i].ID
		}
		wantSame(t, fmt.Sprintf("%+v in pages of %d", f, limit), got, want)
	}
}

func testLetterPages(t *testing.T, s Store) {
	const total = 240
	if all, next, err := s.DeadLetterPage(t.Context(), journal.DeadLetterFilter{}, "", 10); len(all) != 0 || next != "" || err != nil {
		t.Errorf("an empty journal has the dead letters %v, then %q (%v)", all, next, err)
	}
	of := func(n int) int { return n % 90 }
	buried(t, s, of, total)
	states := append([]string{"", "all"}, "open", "reprocessing", "discarded", "recovered", "superseded")
	for _, state := range states {
		for i, f := range []journal.DeadLetterFilter{{}, {Policy: "whatsapp-message"}, {Team: "ti"}, {Reason: "MAX_RETRIES"}, {Policy: "failed-job", Team: "cadastro"},
			{Policy: "failed-job", Team: "cadastro", Reason: "TIME_LIMIT"}, {Policy: "none"}} {
			if i > 2 && state != "" && state != "all" {
				continue
			}
			f.State = state
			wantLetters(t, s, of, total, f, func(of journal.Subject, _ *journal.Attempt, d *journal.DeadLetter) bool {
				return (state == "all" || string(d.State) == state || state == "" && d.State == journal.DeadLetterOpen) && (f.Policy == "" || f.Policy == of.Policy) &&
					(f.Team == "" || f.Team == d.Team) && (f.Reason == "" || f.Reason == d.Reason)
			})
		}
	}
	testLetterItem(t, s)
	testLetterLimits(t, s)
	testLetterCursors(t, s)
}

// testLetterItem looks at one with all that is known of it.
func testLetterItem(t *testing.T, s Store) {
	of, a, want := letterNumber(11, 11)
	got, found, err := s.DeadLetter(t.Context(), want.ID)
	if err != nil || !found {
		t.Fatalf("it was not found (%v)", err)
	}
	want.Record = got.Record
	wantSame(t, "a dead letter", got, journal.DeadLetterItem{DeadLetter: want, Subject: of, Error: a.Error, Classification: a.Decision.ErrorClassification,
		MatchedRule: a.Decision.MatchedRule, Fingerprint: journal.FingerprintOf(of.Policy, &a).ID, FirstFailure: got.FirstFailure})
	if got.FirstFailure.IsZero() {
		t.Error("its first failure is not told")
	}
	for _, id := range []string{"", "none", strings.ToUpper(want.ID) + "x"} {
		if got, found, err := s.DeadLetter(t.Context(), id); found || err != nil {
			t.Errorf("%q is %+v (%v)", id, got, err)
		}
	}
}

// testLetterLimits: a page is bounded, whatever is asked for.
func testLetterLimits(t *testing.T, s Store) {
	for limit, want := range map[int]int{-1: 1, 0: 1, 1: 1, 200: 200, 201: 200, 1 << 40: 200} {
		all, next, err := s.DeadLetterPage(t.Context(), journal.DeadLetterFilter{State: "all"}, "", limit)
		if err != nil || len(all) != want || next == "" {
			t.Errorf("a page of %d holds %d, then %q (%v); want %d and more", limit, len(all), next, err, want)
		}
	}
}

// testLetterCursors: one that was changed, cut or made up is refused, and one of another list.
func testLetterCursors(t *testing.T, s Store) {
	f := journal.DeadLetterFilter{State: "all"}
	_, next, err := s.DeadLetterPage(t.Context(), f, "", 5)
	if err != nil || next == "" {
		t.Fatal(next, err)
	}
	changed := []byte(next)
	changed[3] ^= 1
	for _, bad := range []string{string(changed), next[1:], next + "A", next + "=", "x", "0", strings.Repeat("A", 22), "' OR 1=1", strings.Repeat("x", 1<<20), "\x00", next + "\n"} {
		if _, _, err := s.DeadLetterPage(t.Context(), f, bad, 5); !errors.Is(err, journal.ErrBadCursor) {
			t.Errorf("the cursor %.40q is answered with %v", bad, err)
		}
	}
	for _, other := range []journal.DeadLetterFilter{{}, {State: "all", Team: "ti"}, {State: "all", Query: "x"}, {State: "all", Policy: "ti"},
		{State: "all", Fingerprint: "ti"}, {State: "all", Since: at(0)}, {State: "all", Until: at(0)}} {
		if _, _, err := s.DeadLetterPage(t.Context(), other, next, 5); !errors.Is(err, journal.ErrBadCursor) {
			t.Errorf("a cursor of another list than %+v is answered with %v", other, err)
		}
	}
	for _, state := range []string{"none", "OPEN", "'"} {
		if _, _, err := s.DeadLetterPage(t.Context(), journal.DeadLetterFilter{State: state}, "", 5); !errors.Is(err, journal.ErrBadFilter) {
			t.Errorf("the state %q is answered with %v", state, err)
		}
	}
}

// testLetterPagesBeside walks while others write: what was there comes once, the newest first, and nothing else but what
// is newer than the walk.
func testLetterPagesBeside(t *testing.T, s Store) {
	const total, more = 300, 200
	of := func(n int) int { return n % 50 }
	buried(t, s, of, total)
	done := make(chan error, 1)
	go func() {
		for n := total; n < total+more; n += 10 {
			if err := bury(t.Context(), s, of, n, n+1, n+2, n+3, n+4, n+5, n+6, n+7, n+8, n+9); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for walks := 0; walks < 3 || len(done) == 0; walks++ {
		for _, f := range []journal.DeadLetterFilter{{State: "all"}, {State: "all", Team: "ti"}, {State: "all", Query: "gateway"}, {State: "all", Query: "CLM-00"}} {
			all, err := walk(t.Context(), s, f, 17)
			if err != nil {
				t.Fatal(err)
			}
			last, old := int64(1<<62), 0
			for i := range all {
				if all[i].Record >= last {
					t.Fatalf("%+v: record %d comes behind %d", f, all[i].Record, last)
				}
				if last = all[i].Record; last <= total {
					old++
				}
			}
			if want := count(total, f); old != want {
				t.Fatalf("%+v: %d of those that were there are listed, want %d", f, old, want)
			}
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// count is how many of the first dead letters have the team and the error that the filter asks for.
func count(total int, f journal.DeadLetterFilter) (n int) {
	for i := range total {
		_, a, d := letterNumber(i, 0)
		if (f.Team == "" || f.Team == d.Team) && (f.Query != "gateway" || strings.Contains(a.Error, f.Query)) {
			n++
		}
	}
	return n
}

func testLetterSearch(t *testing.T, s Store) {
	const total = 120
	of := func(n int) int { return n % 45 }
	buried(t, s, of, total)
	for query, passes := range map[string]func(of journal.Subject, a *journal.Attempt, d *journal.DeadLetter) bool{
		"gateway": func(_ journal.Subject, a *journal.Attempt, _ *journal.DeadLetter) bool {
			return strings.Contains(a.Error, "gateway")
		},
		" GATEWAY  timeout ": func(_ journal.Subject, a *journal.Attempt, _ *journal.DeadLetter) bool {
			return strings.Contains(a.Error, "gateway")
		},
		"gate": func(_ journal.Subject, a *journal.Attempt, _ *journal.DeadLetter) bool {
			return strings.Contains(a.Error, "gateway")
		},
		"gateway carteira": func(journal.Subject, *journal.Attempt, *journal.DeadLetter) bool { return false },
		"NÃO": func(_ journal.Subject, a *journal.Attempt, _ *journal.DeadLetter) bool {
			return strings.Contains(a.Error, "não")
		},
		"100%": func(journal.Subject, *journal.Attempt, *journal.DeadLetter) bool { return false }, // the pattern has # for it
		"'odd'": func(_ journal.Subject, a *journal.Attempt, _ *journal.DeadLetter) bool {
			return strings.Contains(a.Error, "odd")
		},
		"time_limit": func(_ journal.Subject, a *journal.Attempt, _ *journal.DeadLetter) bool {
			return a.Decision.MatchedRule == "TIME_LIMIT"
		},
		"time_limit gateway": func(_ journal.Subject, a *journal.Attempt, _ *journal.DeadLetter) bool {
			return a.Decision.MatchedRule == "TIME_LIMIT" && strings.Contains(a.Error, "gateway")
		},
		"CLM-0007": func(of journal.Subject, _ *journal.Attempt, _ *journal.DeadLetter) bool {
			return strings.HasPrefix(of.ID, "CLM-0007")
		},
		"clm-000": func(of journal.Subject, _ *journal.Attempt, _ *journal.DeadLetter) bool {
			return strings.HasPrefix(of.ID, "CLM-000")
		},
		"CLM-%":                      func(journal.Subject, *journal.Attempt, *journal.DeadLetter) bool { return false },
		"0007":                       func(journal.Subject, *journal.Attempt, *journal.DeadLetter) bool { return false },
		strings.Repeat("qq ", 1<<16): func(journal.Subject, *journal.Attempt, *journal.DeadLetter) bool { return false },
		"\xff\x00":                   func(journal.Subject, *journal.Attempt, *journal.DeadLetter) bool { return false },
		"\U0010ffff":                 func(journal.Subject, *journal.Attempt, *journal.DeadLetter) bool { return false },
	} {
		wantLetters(t, s, of, total, journal.DeadLetterFilter{State: "all", Query: query}, passes)
		wantLetters(t, s, of, total, journal.DeadLetterFilter{Policy: "failed-job", Team: "ti", Query: query}, func(of journal.Subject, a *journal.Attempt, d *journal.DeadLetter) bool {
			return passes(of, a, d) && of.Policy == "failed-job" && d.Team == "ti" && d.State == journal.DeadLetterOpen
		})
	}
	_, _, d := letterNumber(13, 13)
	for _, query := range []string{d.ID, " " + strings.ToUpper(d.ID) + " "} {
		wantLetters(t, s, of, total, journal.DeadLetterFilter{State: string(d.State), Query: query}, func(_ journal.Subject, _ *journal.Attempt, o *journal.DeadLetter) bool {
			return o.ID == d.ID
		})
	}
	wantLetters(t, s, of, total, journal.DeadLetterFilter{State: "all", Reason: "none", Query: d.ID}, func(journal.Subject, *journal.Attempt, *journal.DeadLetter) bool { return false })
}

// testLetterSearchWide looks for the beginning of more subjects than are looked at one by one: pages may be short then, and
// add up to the whole all the same.
func testLetterSearchWide(t *testing.T, s Store) {
	const total = 9000
	of := func(n int) int { return n % 3000 }
	buried(t, s, of, total)
	for _, f := range []journal.DeadLetterFilter{{State: "all", Query: "CLM-"}, {Query: "CLM-"}, {State: "all", Policy: "failed-job", Query: "clm-"},
		{State: "all", Query: "CLM-2"}} {
		all, err := walk(t.Context(), s, f, 200)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range total {
			name, _, d := letterNumber(i, of(i))
			if strings.HasPrefix(name.ID, strings.ToUpper(f.Query)) && (f.State == "all" || d.State == journal.DeadLetterOpen) && (f.Policy == "" || f.Policy == name.Policy) {
				n++
			}
		}
		if len(all) != n || !slices.IsSortedFunc(all, func(a, b journal.DeadLetterItem) int { return int(b.Record - a.Record) }) {
			t.Errorf("%+v: %d are listed, want %d, the newest first", f, len(all), n)
		}
	}
}

// testLetterCounts: what is born, moves and is purged is counted, and the oldest that is open told.
func testLetterCounts(t *testing.T, s Store) {
	subjects := []journal.Subject{subject("CLM-1-1"), subject("CLM-2-1"), subject("CLM-3-1")}
	letter := func(n int, state journal.DeadLetterState) journal.DeadLetter {
		return journal.DeadLetter{ID: fmt.Sprint("letter-", n), State: state, Episode: 1, Team: "ti", Reason: "A", CreatedAt: at(int64(n)), ChangedAt: at(int64(n))}
	}
	for n, of := range subjects {
		must(t, s, []journal.Lookup{{Subject: of}}, func(x *transaction) {
			x.bury(0, of, journal.Attempt{Episode: 1, Identity: identity(), DeadLetter: fmt.Sprint("letter-", n)}, letter(n, journal.DeadLetterOpen))
			x.Figures = []journal.Figure{figure(of.Policy, 0, "dead_letters_open", 0, 1)}
		})
	}
	want := func(what string, all ...journal.DeadLetterCount) {
		t.Helper()
		got, err := s.DeadLetterCounts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			all[i].Policy, all[i].Team, all[i].Reason = "tiss-submission", "ti", "A"
		}
		wantSame(t, "the counts "+what, got, all)
	}
	open := func(n int64, oldest int64) journal.DeadLetterCount {
		return journal.DeadLetterCount{State: journal.DeadLetterOpen, N: n, Oldest: at(oldest)}
	}
	want("of three", open(3, 0))
	move := func(n int, to journal.DeadLetterState) {
		t.Helper()
		must(t, s, []journal.Lookup{{Subject: subjects[n], DeadLetter: fmt.Sprint("letter-", n)}}, func(x *transaction) {
			d := *x.histories[0].DeadLetter
			d.State = to
			x.DeadLetters = append(x.DeadLetters, journal.KeyedDeadLetter{Key: x.histories[0].Key, Policy: "tiss-submission", DeadLetter: d})
		})
	}
	move(0, journal.DeadLetterDiscarded)
	want("once the oldest is dealt with", journal.DeadLetterCount{State: journal.DeadLetterDiscarded, N: 1}, open(2, 1))
	move(0, journal.DeadLetterReprocessing)
	want("where it is sent again", open(2, 1), journal.DeadLetterCount{State: journal.DeadLetterReprocessing, N: 1})
	move(0, journal.DeadLetterOpen)
	want("where it is open again", open(3, 0))
	move(1, journal.DeadLetterOpen)
	want("where nothing moves", open(3, 0))
	wantFigures(t, s, 1, figure("tiss-submission", 0, "dead_letters_open", 0, 3))
	purge(t, s, 2, 9, 2)
	want("after a purge", open(1, 2))
	wantFigures(t, s, 1, figure("tiss-submission", 0, "dead_letters_open", 0, 1))
	purge(t, s, 3, 9, 1)
	want("after a purge of all")
	wantFigures(t, s, 1, figure("tiss-submission", 0, "dead_letters_open", 0, 0))
	if all, _, err := s.DeadLetterPage(t.Context(), journal.DeadLetterFilter{}, "", 9); len(all) != 0 || err != nil {
		t.Errorf("after a purge of all %v are listed (%v)", all, err)
	}
}
