package storetest

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// BenchLetters measures what people's lists of so many dead letters cost: of 5 policies, 4 teams and 12 reasons, of 2,000 causes
// of which few are frequent, one subject in four with two, a twentieth of them open, most of those young. Of each list it prints the
// milliseconds that 95 of 100 pages stay below, the longest, and how much memory one takes.
func BenchLetters(b *testing.B, s Store, letters int) {
	g := &graveyard{random: rand.New(rand.NewPCG(3, 4)), total: letters}
	began := time.Now()
	for g.made < letters {
		g.fill(b, s, min(1000, letters-g.made))
	}
	b.Logf("%d dead letters in %s", letters, time.Since(began).Round(time.Second))
	began = time.Now()
	for g.incident = true; g.made < letters+letters/20; {
		g.fill(b, s, min(1000, letters+letters/20-g.made))
	}
	b.Logf("%d more of one cause in %s", letters/20, time.Since(began).Round(time.Second))
	for _, list := range g.lists() {
		b.Run(list.name, func(b *testing.B) { benchPages(b, s, &list) })
	}
	b.Run("counts", func(b *testing.B) {
		measure(b, func() error {
			_, err := s.DeadLetterCounts(b.Context())
			return err
		})
	})
	g.benchGroups(b, s)
	g.benchTallies(b, s)
	g.benchGathering(b, s)
	b.Run("one", func(b *testing.B) {
		measure(b, func() error {
			_, _, err := s.DeadLetter(b.Context(), g.id(g.random.IntN(letters)))
			return err
		})
	})
}

// graveyard is made of commits.
type graveyard struct {
	random      *rand.Rand
	total, made int
	// incident tells that what is made is open and of one cause.
	incident bool
	// causes are fingerprints of some, each as often as it is met.
	causes []string
}

// list is one to be measured: filter draws what is asked for, and pages are walked deep from its first one.
type list struct {
	name   string
	filter func() journal.DeadLetterFilter
	limit  int
	deep   bool
}

func (g *graveyard) lists() []list {
	f := func(f journal.DeadLetterFilter) func() journal.DeadLetterFilter {
		return func() journal.DeadLetterFilter { return f }
	}
	pick := func(make func(policy string, team decision.Team, reason decision.Reason) journal.DeadLetterFilter) func() journal.DeadLetterFilter {
		return func() journal.DeadLetterFilter { return make(g.kind(g.random.IntN(80), g.random.IntN(44))) }
	}
	query := func(make func(n int) string) func() journal.DeadLetterFilter {
		return func() journal.DeadLetterFilter {
			return journal.DeadLetterFilter{State: "all", Query: make(g.random.IntN(g.total))}
		}
	}
	return []list{
		{"open", f(journal.DeadLetterFilter{}), 50, false},
		{"open, deep", f(journal.DeadLetterFilter{}), 50, true},
		{"all of 200, deep", f(journal.DeadLetterFilter{State: "all"}), 200, true},
		{"a policy's", pick(func(p string, _ decision.Team, _ decision.Reason) journal.DeadLetterFilter {
			return journal.DeadLetterFilter{Policy: p}
		}), 50, true},
		{"a team's", pick(func(_ string, t decision.Team, _ decision.Reason) journal.DeadLetterFilter {
			return journal.DeadLetterFilter{Team: t}
		}), 50, true},
		{"a reason's, all of 200", pick(func(_ string, _ decision.Team, r decision.Reason) journal.DeadLetterFilter {
			return journal.DeadLetterFilter{State: "all", Reason: r}
		}), 200, true},
		{"a kind's", pick(func(p string, t decision.Team, r decision.Reason) journal.DeadLetterFilter {
			return journal.DeadLetterFilter{State: "discarded", Policy: p, Team: t, Reason: r}
		}), 50, true},
		{"a cause's", func() journal.DeadLetterFilter {
			return journal.DeadLetterFilter{Fingerprint: g.causes[g.random.IntN(len(g.causes))]}
		}, 50, true},
		{"a cause's, all of 200", func() journal.DeadLetterFilter {
			return journal.DeadLetterFilter{State: "all", Fingerprint: g.causes[g.random.IntN(len(g.causes))]}
		}, 200, true},
		{"an hour's, open", func() journal.DeadLetterFilter { return g.hour(journal.DeadLetterFilter{}) }, 50, true},
		{"an hour's, all of 200", func() journal.DeadLetterFilter { return g.hour(journal.DeadLetterFilter{State: "all"}) }, 200, true},
		{"a team's of an hour", func() journal.DeadLetterFilter {
			return g.hour(journal.DeadLetterFilter{Team: decision.Team(fmt.Sprint("team-", g.random.IntN(4)))})
		}, 50, true},
		{"nobody's", f(journal.DeadLetterFilter{Team: "nobody"}), 50, false},
		{"a frequent word, open", func() journal.DeadLetterFilter { return journal.DeadLetterFilter{Query: "gateway"} }, 50, true},
		{"a frequent word, all of 200", f(journal.DeadLetterFilter{State: "all", Query: "gateway"}), 200, true},
		{"a rare word", query(func(n int) string { return "cause" + letters(n%400) + " gateway" }), 50, false},
		{"a word that is nowhere", query(func(int) string { return "nowhere" }), 50, false},
		{"a subject", query(func(n int) string { return g.subject(n).ID }), 50, false},
		{"a beginning of few subjects", query(func(n int) string { return g.subject(n).ID[:9] }), 50, false},
		{"a beginning of many subjects", query(func(int) string { return "CLM-12" }), 50, true},
		{"a beginning of all subjects", query(func(int) string { return "CLM-" }), 50, true},
		{"an id", query(g.id), 50, false},
		{"a beginning that is nowhere", query(func(int) string { return "XYZ-1" }), 50, false},
	}
}

// letters is a number in letters: digits would not tell causes apart.
func letters(n int) string {
	text := []byte{}
	for range 3 {
		text, n = append(text, byte('a'+n%26)), n/26
	}
	return string(text)
}

// kind of the n-th, which has that cause: a cause has its own team and reason, or ends at the limit.
func (g *graveyard) kind(n, cause int) (string, decision.Team, decision.Reason) {
	policy, team := fmt.Sprint("policy-", n*7%80%5), decision.Team(fmt.Sprint("team-", cause%4))
	if n%2 == 0 {
		return policy, "team-0", "MAX_RETRIES"
	}
	return policy, team, decision.Reason(fmt.Sprint("REASON_", cause%11))
}

func (g *graveyard) id(n int) string {
	return fmt.Sprintf("%08x-0000-5000-8000-%012x", uint32(n)*2654435761, n)
}

func (g *graveyard) subject(n int) journal.Subject {
	n = n/5*4 + min(n%5, 3) // every fifth is of the one before
	policy, _, _ := g.kind(n, 0)
	return journal.Subject{Tenant: "<default>", Policy: policy, ID: fmt.Sprintf("CLM-%06d-%d", uint32(n)*2654435761%1_000_000, n)}
}

// state of the n-th: a twentieth are open.
func (g *graveyard) state(n int) journal.DeadLetterState {
	open := 0.02
	if n > g.total*9/10 {
		open = 0.32
	}
	switch x := g.random.Float64(); {
	case g.incident, x < open:
		return journal.DeadLetterOpen
	case x < open+0.01:
		return journal.DeadLetterReprocessing
	case x < 0.5:
		return journal.DeadLetterRecovered
	case x < 0.85:
		return journal.DeadLetterDiscarded
	default:
		return journal.DeadLetterSuperseded
	}
}

// fill records the next dead letters.
func (g *graveyard) fill(b *testing.B, s Store, size int) {
	var lookups []journal.Lookup
	at := map[journal.Subject]int{}
	for n := g.made; n < g.made+size; n++ {
		if of := g.subject(n); at[of] == 0 {
			lookups = append(lookups, journal.Lookup{Subject: of})
			at[of] = len(lookups)
		}
	}
	_, err := transact(b.Context(), s, lookups, func(x *transaction) {
		for n := g.made; n < g.made+size; n++ {
			of := g.subject(n)
			a, d := g.letter(n)
			x.bury(at[of]-1, of, a, d)
			if n%997 == 0 {
				g.causes = append(g.causes, x.DeadLetters[len(x.DeadLetters)-1].Fingerprint)
			}
		}
		x.Link.At = when(g.made + size)
		x.Link, x.sealed = x.Link.After(x.head), true
	})
	if err != nil {
		b.Fatal(err)
	}
	g.made += size
}

// when the n-th was born: ten in a second.
func when(n int) time.Time { return at(int64(n) * 100) }

// hour adds an hour to a filter.
func (g *graveyard) hour(f journal.DeadLetterFilter) journal.DeadLetterFilter {
	f.Since = when(g.random.IntN(g.total))
	f.Until = f.Since.Add(time.Hour)
	return f
}

func (g *graveyard) letter(n int) (journal.Attempt, journal.DeadLetter) {
	cause := int(400 * g.random.Float64() * g.random.Float64() * g.random.Float64() * g.random.Float64())
	text := fmt.Sprintf("request %d: cause%s, the service answered %s", n, letters(cause), [...]string{"nothing", "late", "by the gateway"}[cause%3])
	_, team, reason := g.kind(n, cause)
	if g.incident {
		text, team, reason = "the portal refused the credential of request "+strconv.Itoa(n), "team-1", "CREDENTIAL"
	}
	when := when(n)
	a := journal.Attempt{Episode: 1, Identity: identity(), Error: text, ReceivedAt: when, DeadLetter: g.id(n), Rule: decision.RNBIL005,
		Decision: decision.Decision{Outcome: decision.MaxRetriesExceeded, ErrorClassification: decision.Unknown, Reason: decision.ReasonMaxRetries, AnalysedAt: when,
			FirstFailure: when, RetryCount: 5, MaxRetries: 5, RetryReason: "Maximum of 5 retries reached", Team: team, Catalogue: "3f9a1c77d0e2"}}
	d := journal.DeadLetter{ID: g.id(n), State: g.state(n), Episode: 1, Outcome: decision.MaxRetriesExceeded, Reason: reason, Team: team, RetryCount: 5, MaxRetries: 5,
		ProcessInstanceKey: 2251799813685249, CreatedAt: when, ChangedAt: when, ReviewJobKey: 2251799813685250, ReviewSeen: when}
	return a, d
}

// benchPages reads pages of a list, one after the other where it is deep, else the first.
func benchPages(b *testing.B, s Store, l *list) {
	f, cursor, items, pages := l.filter(), "", 0, 0
	measure(b, func() error {
		page, next, err := s.DeadLetterPage(b.Context(), f, cursor, l.limit)
		items, pages, cursor = items+len(page), pages+1, next
		if !l.deep || next == "" || pages%100 == 0 {
			f, cursor = l.filter(), ""
		}
		return err
	})
	b.ReportMetric(float64(items)/float64(pages), "items/page")
}

// measure reports how long calls take, and what they allocate.
func measure(b *testing.B, call func() error) {
	var took []time.Duration
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		began := time.Now()
		if err := call(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	runtime.ReadMemStats(&after)
	slices.Sort(took)
	b.ReportMetric(took[len(took)*95/100].Seconds()*1000, "ms-p95")
	b.ReportMetric(took[len(took)-1].Seconds()*1000, "ms-longest")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(len(took))/1024, "KiB/call")
}
