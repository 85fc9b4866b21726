package notify_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/clock"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/notify"
	"retry-worker/internal/redact"
	"retry-worker/internal/testkit"
)

const secretText = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqrTwjU"

// teams returns the default catalogue with lines for its teams, by name.
func teams(t testing.TB, lines map[string]string) *catalogue.Catalogue {
	t.Helper()
	text := "extends: built-in\n" + // and a rule that has a name and codes of its own
		"policies: {tiss-submission: {permanent: [{name: our-audit, codes: [AUDIT_42], reason: DEFERRED, team: ti, hint: Veja a auditoria.}]}}\n"
	if len(lines) > 0 {
		text += "teams:\n"
	}
	for team, more := range lines {
		text += "  " + team + ":\n    " + strings.ReplaceAll(more, "\n", "\n    ") + "\n"
	}
	c, err := catalogue.Parse("policies.yaml", []byte(text))
	testkit.Must(t, err)
	return c
}

// secretFile returns a file with the suite's secret.
func secretFile(t testing.TB, text string) string {
	return testkit.File(t, "secret", []byte(text+"\n"))
}

// world is a journal in memory and a Gatherer over it, in a bubble of testing/synctest.
type world struct {
	*testkit.Fixture
	t       *testing.T
	logs    *observer.ObservedLogs
	log     *zap.Logger
	options notify.Options

	mu        sync.Mutex
	catalogue *catalogue.Catalogue
	died      int
	ends      []func()
}

// play runs a test in fake time, which begins at midnight UTC of 1 January 2000, a Saturday.
func play(t *testing.T, lines map[string]string, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.DebugLevel)
		w := &world{Fixture: testkit.New(t), t: t, catalogue: teams(t, lines), logs: logs, log: zap.New(core)}
		w.options = notify.Options{Store: w.Memory, Catalogue: w.inForce, Clock: clock.Machine{},
			Settings: notify.Settings{Interval: 15 * time.Minute, DigestHour: 7, Zone: time.FixedZone("-03", -3*3600), PublicURL: "https://retry.hospital.example",
				SMTP: &notify.MailServer{}}, Destinations: func() ([]gate.Destination, error) { return nil, nil }, Made: func() {}, Log: w.log}
		defer func() {
			for _, end := range w.ends {
				end()
			}
		}()
		test(w)
	})
}

func (w *world) inForce() *catalogue.Catalogue {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.catalogue
}

func (w *world) reload(c *catalogue.Catalogue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.catalogue = c
	w.SetPolicies(c.Policies)
}

// gather runs a Gatherer until the test ends or end is called.
func (w *world) gather() (g *notify.Gatherer, end func()) {
	g = notify.NewGatherer(w.options)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { g.Run(ctx, ctx) })
	var once sync.Once
	end = func() { once.Do(func() { cancel(); running.Wait() }) }
	w.ends = append(w.ends, end)
	return g, end
}

// die gives up n claims at once for that error, as a worker records it.
func (w *world) die(n int, text string) {
	w.t.Helper()
	w.dieBefore(n, text, time.Time{}, "")
}

// dieBefore is die for claims with a deadline and an amount.
func (w *world) dieBefore(n int, text string, deadline time.Time, worth string) {
	w.t.Helper()
	for range n {
		w.died++
		a := w.Analysis("tiss-submission", fmt.Sprintf("CLM-777-%d", w.died), text, 0)
		a.Failure.Deadline = deadline
		if worth != "" {
			a.Failure.Context = decision.Context{{Variable: "valor", Type: decision.ContextMoney, Value: worth}}
		}
		a.Error = redact.Line(a.Error, 1000)
		if r, err := w.Journal.Analyze(w.t.Context(), a); err != nil || r.Attempt.DeadLetter == "" {
			w.t.Fatalf("the claim lives on: %+v, %v", r.Decision, err)
		}
	}
}

const (
	credentials = "LoginInvalido: a senha do prestador expirou"
	patientData = "INVALID_PATIENT_DATA - carteira 998877 não confere"
)

// messages returns the waiting messages of a key.
func (w *world) messages(key string) []journal.Message {
	w.t.Helper()
	var all []journal.Message
	for _, m := range w.Memory.Outbox() {
		if m.Queue == deadletter.NoticeQueue && m.Key == key {
			all = append(all, m)
		}
	}
	return all
}

// send publishes the one message of a key, as a relay does, and returns its notice.
func (w *world) send(key string) *notify.Notice {
	w.t.Helper()
	m := w.messages(key)
	if len(m) != 1 {
		w.t.Fatalf("%d messages of %s wait, want one", len(m), key)
	}
	testkit.Must(w.t, w.Journal.Published(w.t.Context(), []int64{m[0].Sequence}))
	n := &notify.Notice{}
	testkit.Must(w.t, json.Unmarshal([]byte(m[0].Body), n))
	return n
}
