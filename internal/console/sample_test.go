package console_test

import (
	"strconv"
	"testing"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// world is a journal with a clock of its own, and people who decide on what it gives up.
type world struct{ *testkit.Fixture }

func newWorld(t testing.TB, at time.Time) world { return world{testkit.New(t, testkit.At(at))} }

// hostile is an error text that would like to act.
const hostile = "<script>alert(1)</script>\x1b[31mred\x1b[0m \u202Eevil\u200b \"'><img src=x onerror=alert(2)> {{.Secret}} \x00end"

// subjects of the sample.
const (
	deadID      = "CLM-2026-004711"
	permanentID = "CLM-2026-004802"
	longStoryID = "CLM-2026-004650"
	hostileID   = "msg/<b>7</b>?x=1#y&z \"q\" é"
)

// sample is a worker's week, up to now.
func sample(t *testing.T) world {
	then := now.Add(-190 * time.Minute)
	w := newWorld(t, then.Add(-80*time.Hour))
	const tiss = "tiss-submission"
	fails := func(policy, id, text string) *journal.Attempt { return w.Fail(policy, id, text, -1) }
	dies := func(policy, id, text string) (deadLetter string) {
		a := fails(policy, id, text)
		for ; a.Decision.ShouldRetry(); a = fails(policy, id, text) {
			w.Set(a.Decision.NextRetryTime.Add(4 * time.Second))
		}
		return a.DeadLetter
	}
	// A claim that a person sent again after three days, and that went through then.
	long := dies(tiss, longStoryID, "Timeout waiting for https://portal.operadora.example/tiss: read timed out after 30000 ms")
	w.Await(long)
	w.Set(then.Add(-6 * time.Hour))
	_, err := w.DeadLetters.Decide(t.Context(), deadletter.Command{Action: journal.BulkRetry, ID: long, Reason: "Portal da operadora voltou; combinado com ela por telefone.", By: "marta.lima", RetryOptions: journal.RetryOptions{Force: true, When: deadletter.Now}})
	testkit.Must(t, err)
	w.Deliver(true)
	w.Advance(40 * time.Second)
	w.Succeed(tiss, longStoryID)
	// A day with its failures, of which most recover.
	w.Set(then.Add(-5 * time.Hour))
	for i := range 24 {
		id := "CLM-2026-0040" + strconv.Itoa(10+i)
		fails(tiss, id, []string{"HTTP 503 Service Unavailable", "connection reset by peer", "SocketTimeoutException"}[i%3])
		w.Advance(7 * time.Minute)
		if i%4 != 3 {
			w.Succeed(tiss, id)
		}
	}
	w.Set(then.Add(-125 * time.Minute))
	for i, text := range []string{"AUTHORIZATION_DENIED: senha vencida", "INVALID_PATIENT_DATA: carteira não confere", "LoginInvalido: usuário bloqueado", "INSURANCE_EXPIRED", "DUPLICATE_CLAIM protocolo já utilizado"} {
		for n := range 5 - i {
			fails(tiss, "CLM-2026-0048"+strconv.Itoa(10+i*10+n), text)
			w.Advance(time.Minute)
		}
	}
	fails(tiss, permanentID, "INVALID_PATIENT_DATA: número da carteira não confere com o cadastro da operadora")
	dies("whatsapp-message", "wamid.HBgN-4471", "HTTP 500 Internal Server Error")
	fails("whatsapp-message", hostileID, "recipient does not exist 404 "+hostile)
	fails("no-retry", hostileID, hostile)
	dies("job-queue", "import-lote-2219", "database is locked")
	letters, _, err := w.Memory.DeadLetterPage(t.Context(), journal.DeadLetterFilter{State: deadletter.AllStates}, "", 200)
	testkit.Must(t, err)
	for i, item := range letters {
		if item.State == journal.DeadLetterOpen && i%5 != 2 {
			w.Await(item.ID)
		}
	}
	w.portals(t, then)
	w.Set(then.Add(-13 * time.Minute))
	fails(tiss, "CLM-2026-004900", "Connection refused by 10.20.0.7:443")
	// A claim that has just used up its retries, and one that is to be sent again.
	w.Set(then)
	w.Await(dies(tiss, deadID, "HTTP 504 Gateway Timeout em /tissLoteGuias"))
	w.Set(now.Add(-2*time.Minute - 20*time.Second))
	fails(tiss, "CLM-2026-004901", "Connection refused by 10.20.0.7:443")
	w.Set(now)
	return w
}

// portalName is a destination of the sample that is down, for which heldID waits; passedID waited before.
const (
	portalName = "unimed-sp"
	heldID     = "CLM-2026-005001"
	passedID   = "CLM-2026-005002"
)

// portals: one was down and is down again, one has a hostile name and is held by a person.
func (w world) portals(t *testing.T, now time.Time) {
	t.Helper()
	at := func(ago time.Duration) time.Time {
		w.Set(now.Add(-ago))
		return w.Now()
	}
	p := testkit.NewPortal(portalName, w.Journal, at(3*time.Hour))
	p.Fails(t, at(100*time.Minute))
	p.Hold(t, passedID, 9001, now.Add(9*time.Hour))
	p.Happens(t, at(95*time.Minute), testkit.Answered(0))
	p.Release(t, passedID, 9001, "unimed-sp down 10:20–10:25; released 1st of 1")
	p.Happens(t, at(90*time.Minute), destination.Turn{})
	p.Fails(t, at(58*time.Minute))
	p.Hold(t, heldID, 9002, now.Add(6*time.Hour))
	p.Hold(t, "CLM-2026-005003", 9003, time.Time{})
	h := testkit.NewPortal(hostileID, w.Journal, at(50*time.Minute))
	h.Happens(t, w.Now(), destination.Order{Verb: destination.HoldClaims, Until: now.Add(2 * time.Hour)})
}
