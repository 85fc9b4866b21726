package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/console"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/store"
	"retry-worker/internal/testkit"
)

// sampleNow is when the pictures of docs/console.md are taken: a Thursday afternoon at the portal.
var sampleNow = time.Date(2026, time.March, 12, 17, 42, 0, 0, time.UTC)

// engineUp is for how long the sample's engine has been up.
const engineUp = 50 * time.Hour

// sample is a real journal, with a clock of its own, in which a hospital's day is always the same.
type sample struct {
	t       *testing.T
	store   store.Store
	journal *journal.Journal
	review  *deadletter.Service
	// end ends the journal, which writes what waits by the clock of then.
	end func()

	mu   sync.Mutex
	at   time.Time
	keys int64
}

func newSample(t *testing.T, at time.Time) *sample {
	t.Helper()
	s := &sample{t: t, at: at, keys: 2251799813685300}
	var err error
	s.store, err = store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "sample.db"))
	testkit.Must(t, err)
	s.journal = journal.New(s.store, s.now, nil, journal.NoHooks())
	stop, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.journal.Run(stop, context.Background()) })
	s.end = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(func() {
		s.end()
		testkit.Must(t, s.store.Close())
	})
	policies := func() decision.Policies { return catalogue.Default().Policies }
	s.review = deadletter.New(s.store, s.journal, policies, s.now, func() time.Time { return sampleNow.Add(-engineUp) })
	return s
}

func (s *sample) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

// before moves the clock to so long before the pictures are taken.
func (s *sample) before(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = sampleNow.Add(-d)
}

func (s *sample) pass(d time.Duration) { s.before(sampleNow.Sub(s.now()) - d) }

// fails has a subject fail, and returns what was decided.
func (s *sample) fails(policy, id, text string) *journal.Attempt {
	s.t.Helper()
	p := catalogue.Default().Policies[policy]
	f, rejection := p.Read(decision.Variables{ID: decision.Text(id), Error: decision.Text(text)})
	if rejection != nil {
		s.t.Fatal(rejection)
	}
	s.keys += 13
	process := int64(2251799813600000)
	for _, c := range id {
		process += int64(c) * 37
	}
	a := &journal.Analysis{Subject: journal.Subject{Tenant: journal.DefaultTenant, Policy: policy, ID: id}, JobKey: s.keys, ElementInstanceKey: s.keys + 1,
		ProcessInstanceKey: process, Rule: decision.RNBIL005, Policy: p, Failure: &f, Error: text, ReceivedAt: s.now().Add(-3 * time.Millisecond)}
	a.Identity = journal.IdentityOf(a)
	r, err := s.journal.Analyze(s.t.Context(), a)
	testkit.Must(s.t, err)
	s.journal.Answered(&r)
	return r.Attempt
}

// failsUntilDead has it fail again whenever its retry comes.
func (s *sample) failsUntilDead(policy, id, text string) {
	s.t.Helper()
	for {
		a := s.fails(policy, id, text)
		if !a.Decision.ShouldRetry() {
			return
		}
		s.pass(a.Decision.NextRetryTime.Add(4 * time.Second).Sub(s.now()))
	}
}

func (s *sample) succeeds(policy, id string) {
	s.t.Helper()
	_, err := s.journal.Conclude(s.t.Context(), &journal.Outcome{Subject: journal.Subject{Tenant: journal.DefaultTenant, Policy: policy, ID: id}, Success: true})
	testkit.Must(s.t, err)
}

// open is the dead letter of a subject that is open.
func (s *sample) open(id string) *deadletter.Item {
	s.t.Helper()
	items, _, err := s.review.List(s.t.Context(), journal.DeadLetterFilter{Query: id}, "", 1)
	testkit.Must(s.t, err)
	if len(items) != 1 {
		s.t.Fatalf("%d dead letters of %s, expected one", len(items), id)
	}
	return &items[0]
}

// awaits has the subject's process come to its review task.
func (s *sample) awaits(id string) string {
	s.t.Helper()
	item := s.open(id)
	s.keys++
	_, err := s.journal.ReviewSeen(s.t.Context(), &journal.ReviewJob{Subject: item.Subject, DeadLetter: item.ID, JobKey: s.keys})
	testkit.Must(s.t, err)
	return item.ID
}

// deliver has the processes take what was decided.
func (s *sample) deliver() {
	s.t.Helper()
	messages, err := s.store.Pending(s.t.Context(), journal.ReviewQueue, 0, 10)
	testkit.Must(s.t, err)
	for i := range messages {
		answer, err := journal.ReadAnswer(&messages[i])
		testkit.Must(s.t, err)
		testkit.Must(s.t, s.journal.Delivered(s.t.Context(), answer, true))
	}
}

// day is what happened, up to sampleNow.
func (s *sample) day() {
	const tiss = "tiss-submission"
	s.before(30 * time.Hour)
	s.failsUntilDead(tiss, "CLM-2026-004598", "Timeout waiting for the portal: read timed out after 30000 ms")
	s.awaits("CLM-2026-004598")
	s.before(26 * time.Hour)
	for n := range 9 {
		id := fmt.Sprintf("CLM-2026-0046%02d", 10+n)
		a := s.fails(tiss, id, "HTTP 503 Service Unavailable")
		s.before(sampleNow.Sub(a.Decision.NextRetryTime))
		s.succeeds(tiss, id)
	}
	s.before(9 * time.Hour)
	for n := range 34 {
		id := fmt.Sprintf("CLM-2026-0047%02d", 10+n)
		s.fails(tiss, id, []string{"HTTP 503 Service Unavailable", "connection reset by peer", "SocketTimeoutException: Read timed out"}[n%3])
		s.pass(6 * time.Minute)
		s.succeeds(tiss, id)
	}
	s.before(4 * time.Hour)
	for i, text := range []string{
		"AUTHORIZATION_DENIED: senha de autorização vencida", "INVALID_PATIENT_DATA: número da carteira não confere",
		"LoginInvalido: usuário do prestador bloqueado", "INSURANCE_EXPIRED: plano encerrado em 28/02", "DUPLICATE_CLAIM: protocolo já utilizado",
	} {
		for n := range 4 - i/2 {
			id := fmt.Sprintf("CLM-2026-0048%d%d", i+1, n)
			s.fails(tiss, id, text)
			s.pass(40 * time.Second)
			s.awaits(id)
			s.pass(5 * time.Minute)
		}
	}
	s.fails("whatsapp-message", "wamid.HBgN-3318", "HTTP 404: recipient is not on WhatsApp")
	s.reviewedClaim()
	s.portalFails()
	s.peopleDecide()
	s.before(7 * time.Minute)
	s.fails(tiss, "CLM-2026-004911", "Connection refused by 10.20.0.7:443")
	s.pass(90 * time.Second)
	s.fails(tiss, "CLM-2026-004912", "Connection refused by 10.20.0.7:443")
	s.end()
	s.before(0)
}

// peopleDecide: one claim is corrected and goes through, one is let go, one is on its way.
func (s *sample) peopleDecide() {
	s.before(18 * time.Minute)
	s.retries(deadletter.Command{ID: s.open("CLM-2026-004821").ID, By: "joana.reis", Reason: "Número da carteira corrigido no cadastro.", When: deadletter.Now})
	s.pass(50 * time.Second)
	s.succeeds("tiss-submission", "CLM-2026-004821")
	s.before(14 * time.Minute)
	_, err := s.review.Discard(s.t.Context(), deadletter.Command{ID: s.open("CLM-2026-004851").ID, By: "marta.lima", Reason: "Já paga no lote de fevereiro."})
	testkit.Must(s.t, err)
	s.deliver()
	s.before(9 * time.Minute)
	s.retries(deadletter.Command{ID: s.open("CLM-2026-004812").ID, By: "marta.lima", Reason: "Senha de autorização renovada.", When: deadletter.Now})
}

// samplePortal is the destination whose page is shown: it was down in the night, and is down now.
const samplePortal = "unimed-sp"

// portalFails: claims wait while it does not answer.
func (s *sample) portalFails() {
	s.before(26 * time.Hour)
	p := testkit.NewPortal(samplePortal, s.journal, s.now())
	then := func(ago time.Duration, events ...destination.Event) {
		s.before(ago)
		p.Happens(s.t, s.now(), events...)
	}
	failed := destination.Failed{}
	then(16*time.Hour, failed, failed, failed, failed, failed)
	then(15*time.Hour, destination.Answered{})
	then(14*time.Hour+20*time.Minute, destination.Turn{})
	then(28*time.Minute, failed, failed, failed, failed, failed)
	for n := range 12 {
		s.pass(80 * time.Second)
		p.Hold(s.t, fmt.Sprintf("CLM-2026-0050%02d", n+1), int64(1000*n+1000), s.now().Add(time.Duration(5+n*7%12)*time.Hour))
	}
	s.before(5 * time.Minute)
	p.Happens(s.t, s.now(), destination.Turn{Waiting: 12, Canary: "1000"})
	then(4*time.Minute, destination.Failed{Claim: "1000"})
}

// retries carries a person's decision out.
func (s *sample) retries(c deadletter.Command) {
	s.t.Helper()
	_, err := s.review.Retry(s.t.Context(), c)
	testkit.Must(s.t, err)
	s.pass(2 * time.Second)
	s.deliver()
}

// sampleClaim is the claim whose page is shown: it used up its retries, a person sent it again, it failed once more.
const sampleClaim = "CLM-2026-004877"

func (s *sample) reviewedClaim() {
	const tiss, text = "tiss-submission", "HTTP 504 Gateway Timeout em /tissLoteGuias: a operadora não respondeu em 60 s"
	s.before(220 * time.Minute)
	s.failsUntilDead(tiss, sampleClaim, text)
	s.pass(2 * time.Second)
	id := s.awaits(sampleClaim)
	s.before(25 * time.Minute)
	s.retries(deadletter.Command{ID: id, By: "marta.lima", Force: true, When: deadletter.Now,
		Reason: "Operadora confirmou por telefone que o portal voltou."})
	s.pass(70 * time.Second)
	s.fails(tiss, sampleClaim, text)
	s.pass(3 * time.Second)
	s.awaits(sampleClaim)
}

// serve shows the sample's pages, behind the console's own gate.
func (s *sample) serve() string {
	up := console.Signal{Known: true, Up: true, Since: sampleNow.Add(-engineUp)}
	p := console.New(console.Options{Now: s.now, Catalogue: catalogue.Default, Log: zap.NewNop(), Health: func() console.Health {
		return console.Health{Journal: up, Engine: up, Version: "1.0.0"}
	}})
	policies := func() decision.Policies { return catalogue.Default().Policies }
	many := deadletter.New(s.store, s.journal, policies, s.now, func() time.Time { return sampleNow.Add(-engineUp) })
	p.Open(s.store, s.review, many, testkit.StartGates(s.t, s.store, s.journal, testkit.NewClock(s.now()), destination.Defaults()))
	gate := access.New(access.Options{Now: s.now, Public: []string{console.AssetsPrefix}, LoginPage: p.Login, Refuse: p.Refuse})
	server := httptest.NewServer(gate.Middleware(http.Handler(p)))
	s.t.Cleanup(server.Close)
	return server.URL
}
