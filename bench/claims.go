package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"sync"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/journal"
	"retry-worker/internal/redact"
)

// claim is a synthetic claim. Its number decides everything about it.
type claim struct {
	number int64
	failed int64 // how often it has failed
}

// end returns how often the claim fails and what its last failure leads to. Of all failures, 34 % are a claim's
// first, 77 % are retried, 15 % are permanent and 8 % exhaust the retries.
func (c claim) end() (failures int64, last decision.Outcome) {
	few := 1 + c.number/100%3
	switch share := c.number % 100; {
	case share < 43:
		return few, decision.PermanentError
	case share < 66:
		return 6, decision.MaxRetriesExceeded // the policy allows 5 retries
	}
	return few, decision.Retry
}

// next returns what the claim's next failure must lead to.
func (c claim) next() decision.Outcome {
	if failures, last := c.end(); c.failed+1 == failures {
		return last
	}
	return decision.Retry
}

var (
	transientTexts = []string{
		"TIMEOUT - portal TISS sem resposta apos 30s", "HTTP 503 Service Unavailable ao enviar o lote",
		"NETWORK_ERROR: connection reset by peer", "java.net.SocketTimeoutException: Read timed out",
	}
	unknownTexts   = []string{"Lote devolvido sem mensagem da operadora", "Resposta inesperada: <html>manutencao</html>"}
	permanentTexts = []string{
		"INSURANCE_EXPIRED - carteirinha fora da vigencia", "DUPLICATE_CLAIM - guia ja apresentada",
		"INVALID_PATIENT_DATA: CPF 000.000.001-91 divergente do cadastro", "AUTHORIZATION_DENIED: senha negada",
	}
)

func (c claim) text() string {
	from := transientTexts
	switch n := c.number + c.failed; {
	case c.next() == decision.PermanentError:
		from = permanentTexts
	case n%5 == 0:
		from = unknownTexts
	}
	return from[c.number%int64(len(from))]
}

// failure returns the claim's next failure as the worker passes it to the journal: read, redacted, identified.
func (c claim) failure() (*journal.Analysis, error) {
	const firstJob, firstProcess, kept = 1 << 51, 1<<51 + 1<<44, 1000
	policy, now, job := policy(), time.Now(), firstJob+c.number<<4+c.failed<<1
	id := fmt.Sprintf("CLM-%03d-%010d", c.number*617%1000, c.number*6_180_339_887%10_000_000_000)
	f, rejection := policy.Read(decision.Variables{
		ID:                 decision.Text(id),
		Error:              decision.Text(c.text()),
		RetryCount:         decision.Value(strconv.FormatInt(c.failed, 10)),
		LastSubmissionTime: decision.Text(now.UTC().Add(-time.Minute).Format(time.RFC3339)),
	})
	if rejection != nil {
		return nil, fmt.Errorf("the benchmark's own claim is refused: %+v", *rejection)
	}
	if c.next() == decision.PermanentError { // for the lists that are sorted by them
		f.Deadline = now.Add(time.Duration(72+c.number%700) * time.Hour).UTC().Truncate(time.Second)
		f.Context = decision.Context{{Variable: "claimAmount", Type: decision.ContextMoney,
			Value: strconv.FormatInt(100+c.number*7919%90_000, 10)}}
	}
	a := &journal.Analysis{
		Subject: journal.Subject{Tenant: journal.DefaultTenant, Policy: policy.Name, ID: f.ID},
		JobKey:  job, ElementInstanceKey: job + 1, ProcessInstanceKey: firstProcess + c.number,
		Rule: decision.RNBIL005, Policy: policy, Failure: &f, Error: redact.Line(f.Error, kept), ReceivedAt: now,
	}
	return a, nil
}

var policy = sync.OnceValue(decisiontest.TISSSubmission)

// source hands out claims to fail: new ones, and at random those that failed before. A claim is never out twice at a
// time. Safe for concurrent use.
type source struct {
	mu      sync.Mutex
	claims  int64   // made so far
	out     int64   // handed out so far
	waiting []claim // for their next failure
	reserve int     // least number of waiting claims; below it, only new ones come
}

func (s *source) take() claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out++
	if s.out*37%100 < 34 || len(s.waiting) < max(s.reserve, 1) {
		s.claims++
		return claim{number: s.claims}
	}
	i, last := rand.IntN(len(s.waiting)), len(s.waiting)-1
	c := s.waiting[i]
	s.waiting[i], s.waiting = s.waiting[last], s.waiting[:last]
	return c
}

// give puts a claim back after another failure, unless that was its last.
func (s *source) give(c claim) {
	c.failed++
	if failures, _ := c.end(); c.failed >= failures {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, c)
}

// latest returns a source of the last n claims, and takes them from s.
func (s *source) latest(n int64) *source {
	own := &source{claims: s.claims + 1<<28}
	slices.SortFunc(s.waiting, func(a, b claim) int { return int(a.number - b.number) })
	older := sort.Search(len(s.waiting), func(i int) bool { return s.waiting[i].number > s.claims-n })
	s.waiting, own.waiting, s.reserve = s.waiting[:older:older], s.waiting[older:], 0
	return own
}
