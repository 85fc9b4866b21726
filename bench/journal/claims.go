package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/gatewaytest"
	"retry-worker/internal/journal"
	"retry-worker/internal/redact"
)

// Claims by how they end, in per cent; the others recover. Of all their failures 77 % are retried, 15 % are
// permanent and 8 % exhausted, which is the mix of bench/gateway, and 34 % are a claim's first.
const (
	permanentClaims = 43
	exhaustedClaims = 23
	exhaustedAfter  = 6 // failures; the policy allows 5 retries
)

// claim is a synthetic one; all about it follows from its number.
type claim struct {
	number int64
	failed int64 // times so far
}

// end is how often the claim fails in all, and what its last failure leads to.
func (c claim) end() (failures int64, last decision.Outcome) {
	h := scramble(uint64(c.number))
	few := 1 + int64(h>>32%3)
	switch share := h % 100; {
	case share < permanentClaims:
		return few, decision.PermanentError
	case share < permanentClaims+exhaustedClaims:
		return exhaustedAfter, decision.MaxRetriesExceeded
	}
	return few, decision.Retry
}

// next is what the claim's next failure must lead to.
func (c claim) next() decision.Outcome {
	if failures, last := c.end(); c.failed+1 == failures {
		return last
	}
	return decision.Retry
}

// filled is how many failures of the claim a filled journal holds: of every third there are more to come.
func (c claim) filled() int64 {
	failures, _ := c.end()
	h := scramble(uint64(c.number) + 1<<40)
	if failures == 1 || h%3 > 0 {
		return failures
	}
	return 1 + int64(h>>32)%(failures-1)
}

// id is like a claims department's; those of neighbours lie far apart.
func (c claim) id() string {
	return fmt.Sprintf("CLM-%03d-%010d", c.number*617%1000, c.number*6_180_339_887%10_000_000_000)
}

// scramble spreads numbers evenly over all of uint64 (the finalizer of splitmix64).
func scramble(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// portal makes the failures of claims: each a job of its own, the process the claim's.
type portal struct {
	policy                        *decision.Policy
	transient, unknown, permanent []string
	claims, jobs                  atomic.Int64 // made so far
}

func newPortal() (*portal, error) {
	p := &portal{policy: decisiontest.TISSSubmission()}
	for kind, texts := range map[gatewaytest.Kind]*[]string{
		gatewaytest.Transient: &p.transient, gatewaytest.Unknown: &p.unknown, gatewaytest.Permanent: &p.permanent,
	} {
		var err error
		if *texts, err = errorTexts(kind); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// errorTexts are those of the stub gateway for a kind.
func errorTexts(kind gatewaytest.Kind) ([]string, error) {
	var mix gatewaytest.Mix
	mix.Shares[kind] = 100
	var texts []string
	for n := range int64(100) {
		var v struct{ SubmissionError string }
		if err := json.Unmarshal([]byte(mix.Job(n).Variables), &v); err != nil {
			return nil, fmt.Errorf("read the stub gateway's %s claims: %w", kind, err)
		}
		texts = append(texts, v.SubmissionError)
	}
	slices.Sort(texts)
	return slices.Compact(texts), nil
}

// firstKey of Zeebe's first partition; process instances are far from jobs.
const firstKey, firstProcess = 1 << 51, 1<<51 + 1<<44

// failure is the claim's next one as the worker hands it to the journal: read, redacted, identified.
func (p *portal) failure(c claim) (*journal.Analysis, error) {
	now, job := time.Now(), firstKey+2*p.jobs.Add(1)
	h := scramble(uint64(c.number)<<3 + uint64(c.failed))
	f, rejection := p.policy.Read(decision.Variables{
		ID: decision.Text(c.id()), Error: decision.Text(p.errorText(c, h)), RetryCount: decision.Value(strconv.FormatInt(c.failed, 10)),
		LastSubmissionTime: decision.Text(now.UTC().Add(-time.Duration(h%3600) * time.Second).Format(time.RFC3339)),
	})
	if rejection != nil {
		return nil, fmt.Errorf("the benchmark's own claim is refused: %+v", *rejection)
	}
	const kept = 1000 // bytes, as the worker keeps
	a := &journal.Analysis{
		Subject: journal.Subject{Tenant: journal.DefaultTenant, Policy: p.policy.Name, ID: f.ID},
		JobKey:  job, ElementInstanceKey: job + 1, ProcessInstanceKey: firstProcess + c.number,
		Rule: decision.RNBIL005, Policy: p.policy, Failure: &f, Error: redact.Line(f.Error, kept), ReceivedAt: now,
	}
	a.Identity = journal.IdentityOf(a)
	return a, nil
}

func (p *portal) errorText(c claim, h uint64) string {
	from := p.transient
	switch {
	case c.next() == decision.PermanentError:
		from = p.permanent
	case h>>32%77 < 16: // 61 : 16, as in bench/gateway
		from = p.unknown
	}
	return from[h>>40%uint64(len(from))]
}

// source hands out claims whose turn it is to fail: new ones, and those that failed before, at random. A claim
// is out only once. Its methods are safe for concurrent use.
type source struct {
	*portal
	mu      sync.Mutex
	random  *rand.Rand
	waiting []claim // for their next failure
	reserve int     // of waiting claims; new ones come until there are so many
	out     int64   // handed out so far
}

// firstFailures of 100.
const firstFailures = 34

func newSource(p *portal, reserve int) *source {
	return &source{portal: p, random: rand.New(rand.NewPCG(1, 2)), reserve: reserve}
}

func (s *source) take() claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out++
	if s.out*37%100 < firstFailures || len(s.waiting) < max(s.reserve, 1) {
		return claim{number: s.claims.Add(1)}
	}
	i, last := s.random.IntN(len(s.waiting)), len(s.waiting)-1
	c := s.waiting[i]
	s.waiting[i], s.waiting = s.waiting[last], s.waiting[:last]
	return c
}

// give puts a claim back that has failed once more, where that was not the last time.
func (s *source) give(c claim) {
	c.failed++
	if failures, _ := c.end(); c.failed >= failures {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, c)
}

// split deals the waiting claims out to n sources; join brings them together again.
func (s *source) split(n int) []*source {
	parts := make([]*source, n)
	for i := range parts {
		parts[i] = newSource(s.portal, s.reserve/n)
		parts[i].random = rand.New(rand.NewPCG(uint64(s.out), uint64(i)))
		parts[i].out = int64(i)
	}
	for i, c := range s.waiting {
		parts[i%n].waiting = append(parts[i%n].waiting, c)
	}
	return parts
}

func (s *source) join(parts []*source) {
	s.waiting = s.waiting[:0]
	for _, p := range parts {
		s.waiting = append(s.waiting, p.waiting...)
		s.out += p.out
	}
}

// latest takes out the waiting claims with numbers above n, into a source of their own.
func (s *source) latest(n int64) *source {
	own := newSource(s.portal, s.reserve)
	s.waiting = slices.DeleteFunc(s.waiting, func(c claim) bool {
		if c.number > n {
			own.waiting = append(own.waiting, c)
		}
		return c.number > n
	})
	return own
}
