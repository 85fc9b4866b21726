package pages_test

import (
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/console/pages"
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
	if os.Getenv("PREVIEW_EMPTY") == "" {
		w = sampleDead(t, start)
	}
	now := time.Now
	p := pages.New(pages.Options{Now: now, Catalogue: catalogue.Default, Log: zap.NewNop(), Health: func() pages.Health {
		return pages.Health{Journal: pages.Signal{Known: true, Up: true}, Engine: pages.Signal{Known: true, Up: os.Getenv("PREVIEW_DOWN") == "", Since: start}}
	}})
	p.Open(w, w.reviewer())
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
		}
	}()
	server := &http.Server{Addr: addr, Handler: gate.Middleware(p)}
	t.Log(server.ListenAndServe())
}
