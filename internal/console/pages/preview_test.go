package pages_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/console/pages"
	"retry-worker/internal/journal"
)

// TestPreview serves the sample until the test is stopped, to look at and to work on: PREVIEW=127.0.0.1:8099 go test
// -run TestPreview -timeout 1h. PREVIEW_EMPTY=1 has nothing in it, PREVIEW_DOWN=1 no engine, PREVIEW_LOGIN=1 asks for the
// token that it prints.
func TestPreview(t *testing.T) {
	addr := os.Getenv("PREVIEW")
	if addr == "" {
		t.Skip("for people: PREVIEW=127.0.0.1:8099 serves the pages with sample data")
	}
	start := time.Now().UTC()
	w := newWorld(t, start)
	m := newMany(w)
	if os.Getenv("PREVIEW_EMPTY") == "" {
		w = sampleDead(t, start.Add(-10*time.Minute))
		locked(w, 180)
		w.goTo(start)
		m = previewRuns(w)
	}
	now := time.Now
	health := pages.Health{Journal: pages.Signal{Known: true, Up: true}, Engine: pages.Signal{Known: true, Up: true, Since: start}}
	if os.Getenv("PREVIEW_DOWN") != "" {
		health.Engine.Up = false
		health.Notices = []pages.Notice{{Team: "ti", Way: "email", Since: start, Failure: "dial tcp 192.0.2.7:587: connect: connection refused"}}
	}
	p := pages.New(pages.Options{Now: now, Catalogue: catalogue.Default, Log: zap.NewNop(), Health: func() pages.Health { return health }})
	p.Open(w, w.reviewer(), m)
	o := access.Options{Now: now, Public: []string{pages.AssetsPrefix}, LoginPage: p.Login, Refuse: p.Refuse}
	if os.Getenv("PREVIEW_LOGIN") != "" { // the log-in page, and an operator's pages behind it
		secret, token, err := access.NewToken("ana.souza", access.Operator, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		tokens, err := access.Parse("preview", []byte(token.Line()+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		o.Tokens = func() *access.Tokens { return tokens }
		fmt.Println(secret)
	}
	gate := access.New(o)
	go func() { // the sample's clock follows the real one
		for range time.Tick(time.Second) {
			w.goTo(time.Now().UTC())
			m.goesOn()
		}
	}()
	server := &http.Server{Addr: addr, Handler: gate.Middleware(p)}
	t.Log(server.ListenAndServe())
}

// previewRuns are one that is over, one that stands, and one that goes on.
func previewRuns(w *world) *many {
	m := newMany(w)
	m.begin(journal.DeadLetterFilter{Team: "cadastro"}, 60, "Cadastros conferidos com a operadora.")
	m.becomes(2, journal.BulkRecovered)
	m.becomes(1, journal.BulkDeadAgain)
	m.becomes(100, journal.BulkNobody)
	m.begin(journal.DeadLetterFilter{Team: "faturamento"}, 30, "Senhas renovadas.")
	m.becomes(2, journal.BulkTaken)
	_, _ = m.Pause(context.Background(), m.newest().ID, "marta.lima") // its state allows it
	groups, _, err := w.DeadLetterGroups(context.Background(), journal.DeadLetterFilter{}, "", 1)
	if err != nil {
		w.t.Fatal(err)
	}
	m.begin(journal.DeadLetterFilter{Fingerprint: groups[0].Cause.ID}, 60, "Senha do portal trocada; combinado com a operadora por telefone.")
	m.becomes(41, journal.BulkRecovered)
	m.becomes(7, journal.BulkDeadAgain)
	m.becomes(2, journal.BulkNobody)
	return m
}

// goesOn has the newest run decide one more, and those on their way come on.
func (m *many) goesOn() {
	if len(m.runs) == 0 || m.newest().State != journal.BulkRunning {
		return
	}
	m.mu.Lock()
	items := m.items[m.runs[0].ID]
	for i := range items {
		switch items[i].Outcome {
		case journal.BulkTaken:
			if i%3 == 0 {
				items[i].Outcome = journal.BulkRecovered
			}
		case journal.BulkDecided:
			items[i].Outcome = journal.BulkTaken
		}
	}
	m.mu.Unlock()
	m.becomes(1, journal.BulkDecided)
}
