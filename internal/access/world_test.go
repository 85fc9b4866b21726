package access_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"retry-worker/internal/access"
	"retry-worker/internal/testkit"
)

// world is a console behind a Gate, with a clock and a tokens file that the test changes.
type world struct {
	t       *testing.T
	now     time.Time
	tokens  *access.Tokens // nil: no tokens
	handler http.Handler
	logs    *observer.ObservedLogs
	page    access.Login // the last one shown
	ended   *fakeEnded
	gate    *access.Gate
	// provider is for log-ins too; nil: none.
	provider *access.Provider
}

// fakeEnded keeps ended sessions, unless it is read-only or down.
type fakeEnded struct {
	until          map[[sha256.Size]byte]time.Time
	readOnly, down error
}

func (f *fakeEnded) EndSession(_ context.Context, id [sha256.Size]byte, until, _ time.Time) error {
	if err := cmp.Or(f.down, f.readOnly); err != nil {
		return err
	}
	f.until[id] = until
	return nil
}

func (f *fakeEnded) SessionEnded(_ context.Context, id [sha256.Size]byte) (bool, error) {
	_, ended := f.until[id]
	return ended, f.down
}

func (w *world) endedSessions() access.EndedSessions { return w.ended }

// newWorld returns a world with those tokens.
func newWorld(t *testing.T, tokens ...access.Token) *world {
	t.Helper()
	w := &world{t: t, now: start, ended: &fakeEnded{until: map[[sha256.Size]byte]time.Time{}}}
	w.publish(tokens...)
	w.open(func() *access.Tokens { return w.tokens })
	return w
}

// newLocalWorld returns a world without tokens.
func newLocalWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: start}
	w.open(nil)
	return w
}

// publish puts a new tokens file in force.
func (w *world) publish(tokens ...access.Token) {
	w.t.Helper()
	lines := ""
	for i := range tokens {
		lines += tokens[i].Line() + "\n"
	}
	parsed, err := access.Parse("tokens", []byte(lines))
	testkit.Must(w.t, err)
	w.tokens = parsed
}

// replica returns another worker with the same tokens file and store.
func (w *world) replica() *world {
	other := &world{t: w.t, now: w.now, tokens: w.tokens, ended: w.ended}
	other.open(func() *access.Tokens { return other.tokens })
	return other
}

func (w *world) open(tokens func() *access.Tokens) {
	core, logs := observer.New(zap.InfoLevel)
	w.logs = logs
	gate := access.New(access.Options{
		Tokens:   tokens,
		Provider: w.provider,
		Now:      func() time.Time { return w.now },
		Ended:    w.endedSessions,
		Public:   []string{"/assets/"},
		LoginPage: func(rw http.ResponseWriter, _ *http.Request, login access.Login) {
			w.page = login
			if login.Refusal != nil {
				rw.WriteHeader(login.Refusal.Status)
				fmt.Fprintf(rw, "log-in page: %s; ", login.Refusal.Code)
			}
			fmt.Fprintf(rw, "next=%s", login.Next)
		},
		Log: zap.New(core, zap.WithClock(&slow{})),
		Refuse: func(rw http.ResponseWriter, _ *http.Request, refusal access.Refusal) {
			rw.WriteHeader(refusal.Status)
			fmt.Fprintf(rw, "page: %s", refusal.Code)
		},
	})
	mux := http.NewServeMux()
	who := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		id := access.From(r.Context())
		_ = json.NewEncoder(rw).Encode(map[string]any{
			"name": id.Name, "role": cmp.Or(id.Role, "nobody"), "teams": id.Teams, "form": access.FormToken(r.Context()),
			"ends": access.SessionEnds(r.Context()), "reason": r.PostForm.Get("reason"),
		})
	})
	mux.Handle("/", who)
	mux.Handle("POST /dead-letters/retry", require(gate, access.Review, who))
	mux.Handle("POST /api/v1/retry", require(gate, access.Review, who))
	mux.Handle("POST /api/v1/force", require(gate, access.Restart, who))
	mux.HandleFunc("POST /api/v1/bulk", func(rw http.ResponseWriter, r *http.Request) {
		if err := access.CheckTeam(r.Context(), access.Bulk, r.URL.Query().Get("team")); err != nil {
			gate.Deny(rw, r, err)
			return
		}
		who(rw, r)
	})
	w.handler, w.gate = gate.Middleware(mux), gate
}

// require lets through whose role allows the action, as the API does.
func require(gate *access.Gate, action access.Action, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := access.Check(r.Context(), action); err != nil {
			gate.Deny(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// slow is a clock that moves a second with each line of the log, so that no line is dropped for their number.
type slow struct{ at atomic.Int64 }

func (s *slow) Now() time.Time { return time.Unix(s.at.Add(1), 0) }

func (*slow) NewTicker(d time.Duration) *time.Ticker { return time.NewTicker(d) }

// told returns the log's lines since the last call: event, address, token, code and error of each, if it has them.
func (w *world) told() (lines []string) {
	for _, entry := range w.logs.TakeAll() {
		var words []string
		for _, key := range []string{"event", "from", "token", "code", "error"} {
			if value, is := entry.ContextMap()[key].(string); is && value != "" {
				words = append(words, value)
			}
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}

// answer is an answer to a request.
type answer struct {
	status int
	header http.Header
	text   string
	body   map[string]any // if it is JSON
}

type option func(*http.Request)

func header(name, value string) option {
	return func(r *http.Request) { r.Header.Add(name, value) }
}

func bearer(secret string) option { return header("Authorization", "Bearer "+secret) }

func cookie(c *http.Cookie) option {
	return func(r *http.Request) { r.Header.Add("Cookie", c.Name+"="+c.Value) }
}

func from(address string) option { return func(r *http.Request) { r.RemoteAddr = address } }

func host(name string) option { return func(r *http.Request) { r.Host = name } }

func overTLS(r *http.Request) { r.TLS = &tls.ConnectionState{} }

// browser makes a request what a browser sends when a person follows a link or types an address.
func browser(r *http.Request) {
	r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	r.Header.Set("Sec-Fetch-Site", "none")
}

func (w *world) ask(method, target, body string, options ...option) answer {
	w.t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host, r.RemoteAddr = "127.0.0.1:8095", "10.0.0.9:40000"
	for _, set := range options {
		set(r)
	}
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, r)
	result := recorder.Result()
	text, err := io.ReadAll(result.Body)
	testkit.Must(w.t, err)
	a := answer{status: result.StatusCode, header: result.Header, text: string(text)}
	_ = json.Unmarshal(text, &a.body)
	return a
}

func (w *world) get(target string, options ...option) answer {
	w.t.Helper()
	return w.ask(http.MethodGet, target, "", options...)
}

func (w *world) postForm(target string, values url.Values, options ...option) answer {
	w.t.Helper()
	return w.ask(http.MethodPost, target, values.Encode(), append([]option{header("Content-Type", "application/x-www-form-urlencoded")}, options...)...)
}

func (w *world) logIn(secret string, options ...option) answer {
	w.t.Helper()
	return w.postForm("/login", url.Values{"token": {secret}, "next": {"/dead-letters?state=open"}}, options...)
}

// session logs in, which must succeed, and returns the cookie.
func (w *world) session(secret string, options ...option) *http.Cookie {
	w.t.Helper()
	a := w.logIn(secret, options...)
	if a.status != http.StatusSeeOther {
		w.t.Fatalf("the log-in is answered with %d %s", a.status, a.text)
	}
	return a.cookie(w.t)
}

// cookie returns the one cookie of the answer.
func (a *answer) cookie(t *testing.T) *http.Cookie {
	t.Helper()
	cookies := (&http.Response{Header: a.header}).Cookies()
	if len(cookies) != 1 {
		t.Fatalf("%d cookies are set", len(cookies))
	}
	return cookies[0]
}

// refused checks an answer's status and code, that its message is one line, and that it says when to try again if
// that helps.
func (a answer) refused(t *testing.T, what string, status int, code string) {
	t.Helper()
	message, _ := a.body["message"].(string)
	if a.status != status || a.body["error"] != code || len(message) < 20 || strings.Contains(message, "\n") || len(a.body) != 2 {
		t.Errorf("%s: got %d %s, want %d %s", what, a.status, a.text, status, code)
	}
	passes := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
	if again := a.header.Get("Retry-After"); passes != (again != "") {
		t.Errorf("%s: %d with Retry-After %q", what, status, again)
	}
}

// is checks that the request was allowed, as that person's.
func (a answer) is(t *testing.T, what, name, role string) {
	t.Helper()
	if a.status != http.StatusOK || a.body["name"] != name || a.body["role"] != role {
		t.Errorf("%s: got %d %s, want %s as %s", what, a.status, a.text, name, role)
	}
}

// sentToLogIn checks that a browser is sent to the log-in form.
func (a answer) sentToLogIn(t *testing.T, what string) {
	t.Helper()
	if a.status != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), "/login?next=%2F") {
		t.Errorf("%s: got %d %q %s, want the log-in", what, a.status, a.header.Get("Location"), a.text)
	}
}
