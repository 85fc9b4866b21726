package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/console"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// sampleNow is when the pictures of docs/console.md are taken: a Thursday afternoon at the portal.
var sampleNow = time.Date(2026, time.March, 12, 17, 42, 0, 0, time.UTC)

// engineUp is for how long the sample's engine has been up.
const engineUp = 50 * time.Hour

// sample is a journal in which a hospital's day is always the same.
type sample struct {
	*testkit.Fixture
	t    *testing.T
	keys int64
}

func newSample(t *testing.T, at time.Time) *sample {
	t.Helper()
	s := &sample{testkit.New(t, testkit.At(at)), t, 2251799813685300}
	s.SetEngineUp(sampleNow.Add(-engineUp))
	return s
}

// before moves the clock to so long before the pictures are taken.
func (s *sample) before(d time.Duration) { s.Set(sampleNow.Add(-d)) }

// fails has a subject fail, and returns what was decided. Its keys look like an engine's.
func (s *sample) fails(policy, id, text string) *journal.Attempt {
	s.t.Helper()
	s.keys += 13
	process := int64(2251799813600000)
	for _, c := range id {
		process += int64(c) * 37
	}
	a := s.Analysis(policy, id, text, -1)
	a.JobKey, a.ElementInstanceKey, a.ProcessInstanceKey, a.ReceivedAt = s.keys, s.keys+1, process, s.Now().Add(-3*time.Millisecond)
	a.Identity = journal.IdentityOf(a)
	r, err := s.Journal.Analyze(s.t.Context(), a)
	testkit.Must(s.t, err)
	return r.Attempt
}

// failsUntilDead has it fail again whenever its retry comes.
func (s *sample) failsUntilDead(policy, id, text string) {
	s.t.Helper()
	for a := s.fails(policy, id, text); a.Decision.ShouldRetry(); a = s.fails(policy, id, text) {
		s.Set(a.Decision.NextRetryTime.Add(4 * time.Second))
	}
}

// open is the id of a subject's dead letter that is open.
func (s *sample) open(id string) string {
	s.t.Helper()
	items, _, err := s.DeadLetters.List(s.t.Context(), journal.DeadLetterFilter{Query: id}, "", 1)
	testkit.Must(s.t, err)
	if len(items) != 1 {
		s.t.Fatalf("%d dead letters of %s, expected one", len(items), id)
	}
	return items[0].ID
}

// awaits has the subject's process come to its review task.
func (s *sample) awaits(id string) string {
	s.t.Helper()
	deadLetter := s.open(id)
	s.keys++
	s.Await(deadLetter)
	return deadLetter
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
		s.Succeed(tiss, id)
	}
	s.before(9 * time.Hour)
	for n := range 34 {
		id := fmt.Sprintf("CLM-2026-0047%02d", 10+n)
		s.fails(tiss, id, []string{"HTTP 503 Service Unavailable", "connection reset by peer", "SocketTimeoutException: Read timed out"}[n%3])
		s.Advance(6 * time.Minute)
		s.Succeed(tiss, id)
	}
	s.before(4 * time.Hour)
	for i, text := range []string{
		"AUTHORIZATION_DENIED: senha de autorização vencida", "INVALID_PATIENT_DATA: número da carteira não confere",
		"LoginInvalido: usuário do prestador bloqueado", "INSURANCE_EXPIRED: plano encerrado em 28/02", "DUPLICATE_CLAIM: protocolo já utilizado",
	} {
		for n := range 4 - i/2 {
			id := fmt.Sprintf("CLM-2026-0048%d%d", i+1, n)
			s.fails(tiss, id, text)
			s.Advance(40 * time.Second)
			s.awaits(id)
			s.Advance(5 * time.Minute)
		}
	}
	s.fails("whatsapp-message", "wamid.HBgN-3318", "HTTP 404: recipient is not on WhatsApp")
	s.reviewedClaim()
	s.portalFails()
	s.peopleDecide()
	s.before(7 * time.Minute)
	s.fails(tiss, "CLM-2026-004911", "Connection refused by 10.20.0.7:443")
	s.Advance(90 * time.Second)
	s.fails(tiss, "CLM-2026-004912", "Connection refused by 10.20.0.7:443")
	s.before(0)
}

// peopleDecide: one claim is corrected and goes through, one is let go, one is on its way.
func (s *sample) peopleDecide() {
	s.before(18 * time.Minute)
	s.retries(deadletter.Command{ID: s.open("CLM-2026-004821"), By: "joana.reis", Reason: "Número da carteira corrigido no cadastro.", When: deadletter.Now})
	s.Advance(50 * time.Second)
	s.Succeed("tiss-submission", "CLM-2026-004821")
	s.before(14 * time.Minute)
	_, err := s.DeadLetters.Discard(s.t.Context(), deadletter.Command{ID: s.open("CLM-2026-004851"), By: "marta.lima", Reason: "Já paga no lote de fevereiro."})
	testkit.Must(s.t, err)
	s.Deliver(true)
	s.before(9 * time.Minute)
	s.retries(deadletter.Command{ID: s.open("CLM-2026-004812"), By: "marta.lima", Reason: "Senha de autorização renovada.", When: deadletter.Now})
}

// samplePortal is the destination whose page is shown: it was down in the night, and is down now.
const samplePortal = "unimed-sp"

// portalFails: claims wait while it does not answer.
func (s *sample) portalFails() {
	s.before(26 * time.Hour)
	p := testkit.NewPortal(samplePortal, s.Journal, s.Now())
	then := func(ago time.Duration, events ...destination.Event) {
		s.before(ago)
		p.Happens(s.t, s.Now(), events...)
	}
	failed := destination.Failed{}
	then(16*time.Hour, failed, failed, failed, failed, failed)
	then(15*time.Hour, destination.Answered{})
	then(14*time.Hour+20*time.Minute, destination.Turn{})
	then(28*time.Minute, failed, failed, failed, failed, failed)
	for n := range 12 {
		s.Advance(80 * time.Second)
		p.Hold(s.t, fmt.Sprintf("CLM-2026-0050%02d", n+1), int64(1000*n+1000), s.Now().Add(time.Duration(5+n*7%12)*time.Hour))
	}
	s.before(5 * time.Minute)
	p.Happens(s.t, s.Now(), destination.Turn{Waiting: 12, Canary: "1000"})
	then(4*time.Minute, destination.Failed{Claim: "1000"})
}

// retries carries a person's decision out.
func (s *sample) retries(c deadletter.Command) {
	s.t.Helper()
	_, err := s.DeadLetters.Retry(s.t.Context(), c)
	testkit.Must(s.t, err)
	s.Advance(2 * time.Second)
	s.Deliver(true)
}

// sampleClaim is the claim whose page is shown: it used up its retries, a person sent it again, it failed once more.
const sampleClaim = "CLM-2026-004877"

func (s *sample) reviewedClaim() {
	const tiss, text = "tiss-submission", "HTTP 504 Gateway Timeout em /tissLoteGuias: a operadora não respondeu em 60 s"
	s.before(220 * time.Minute)
	s.failsUntilDead(tiss, sampleClaim, text)
	s.Advance(2 * time.Second)
	id := s.awaits(sampleClaim)
	s.before(25 * time.Minute)
	s.retries(deadletter.Command{ID: id, By: "marta.lima", Force: true, When: deadletter.Now,
		Reason: "Operadora confirmou por telefone que o portal voltou."})
	s.Advance(70 * time.Second)
	s.fails(tiss, sampleClaim, text)
	s.Advance(3 * time.Second)
	s.awaits(sampleClaim)
}

// serve shows the sample's pages, behind the console's own gate.
func (s *sample) serve() string {
	up := console.Signal{Known: true, Up: true, Since: sampleNow.Add(-engineUp)}
	p := console.New(console.Options{Now: s.Now, Zone: time.FixedZone("America/Sao_Paulo", -3*3600), Catalogue: catalogue.Default, Log: zap.NewNop(), Health: func() console.Health {
		return console.Health{Journal: up, Engine: up}
	}})
	p.Open(s.Memory, s.DeadLetters, s.Gates())
	gate := access.New(access.Options{Now: s.Now, Public: []string{console.AssetsPrefix}, LoginPage: p.Login, Refuse: p.Refuse, Hooks: access.NoHooks()})
	server := httptest.NewServer(gate.Middleware(http.Handler(p)))
	s.t.Cleanup(server.Close)
	return server.URL
}
