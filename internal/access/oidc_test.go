package access_test

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"retry-worker/internal/access"
	"retry-worker/internal/testkit"
)

const (
	console      = "https://retry.hospital.example"
	clientSecret = "a secret of the client"
)

// browser of a person, who reaches the console over TLS, and the provider.
type person struct {
	*http.Client
	t *testing.T
	w *world
}

func newPerson(w *world) *person {
	jar, _ := cookiejar.New(nil) // never fails
	return &person{&http.Client{Jar: jar, Transport: w}, w.t, w}
}

// RoundTrip answers what is asked of the console.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != strings.TrimPrefix(console, "https://") {
		return http.DefaultTransport.RoundTrip(r)
	}
	r.TLS, r.RemoteAddr, r.Host = &tls.ConnectionState{}, "10.0.0.9:1", r.URL.Host
	if r.Body == nil {
		r.Body = http.NoBody
	}
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

func (p *person) get(address string) (status int, text string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, address, nil)
	testkit.Must(p.t, err)
	r.Header.Set("Accept", "text/html")
	status, _, text = testkit.Send(p.t, p.Client, r)
	return status, text
}

var requestID = regexp.MustCompile(`name="id" value="([^"]+)"`)

// at is the console's address, as cookie jars know it.
var at = &url.URL{Scheme: "https", Host: strings.TrimPrefix(console, "https://"), Path: "/"}

// copied is another browser with the cookies that this one has.
func (p *person) copied() *person {
	other := newPerson(p.w)
	other.Jar.SetCookies(at, p.Jar.Cookies(at))
	return other
}

// logIn goes to the provider and back, and returns what the console says then. change, which may be nil, changes the
// address that the provider sends the browser back to.
func (p *person) logIn(change func(url.Values)) (status int, text string) {
	p.t.Helper()
	status, form := p.get(console + "/login/oidc?next=%2Fdead-letters")
	id := requestID.FindStringSubmatch(form)
	if id == nil {
		return status, form
	}
	p.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), console) {
			return http.ErrUseLastResponse
		}
		return nil
	}
	response, err := p.PostForm(p.w.provider.Issuer+"/login/username", url.Values{"id": {id[1]}, "username": {"maria"}, "password": {"senha"}})
	p.CheckRedirect = nil
	testkit.Must(p.t, err)
	testkit.Must(p.t, response.Body.Close())
	back, err := response.Location()
	testkit.Must(p.t, err)
	q := back.Query()
	if change != nil {
		change(q)
	}
	back.RawQuery = q.Encode()
	return p.get(back.String())
}

// who is by whom the console is asked.
func (p *person) who() string {
	p.t.Helper()
	status, text := p.get(console + "/")
	var id map[string]any
	if json.Unmarshal([]byte(text), &id) != nil || status != http.StatusOK || id["error"] != nil {
		return fmt.Sprint(status, " ", text)
	}
	return strings.TrimSpace(fmt.Sprint(id["name"], " ", id["role"], " ", id["teams"]))
}

// openedTo is a console whose people log in by that provider, and one of its browsers.
func openedTo(t *testing.T, h *hospital) (*world, *person) {
	t.Helper()
	_, file := token(t, "crm", access.Viewer)
	w := newWorld(t, file)
	w.now = time.Now().UTC().Truncate(time.Second) // instants of one length in the cookie
	w.provider = &access.Provider{Issuer: h.URL, ClientID: "retry-worker", ClientSecret: clientSecret, RoleClaim: "roles", TeamClaim: "hospital.teams"}
	w.open(func() *access.Tokens { return w.tokens })
	return w, newPerson(w)
}

func (p *person) is(t *testing.T, what, want string) {
	t.Helper()
	if got := p.who(); got != want {
		t.Errorf("%s: it is %q, want %q", what, got, want)
	}
}

// Roles and teams are the provider's, asked again in time; a restart and another replica end nothing, a log-out does.
func TestProviderLogIn(t *testing.T) {
	h := newHospital(t, map[string]any{"preferred_username": "maria", "roles": []string{"offline_access", "viewer", "operator"},
		"hospital": map[string]any{"teams": []string{"faturamento", "Domain Users", "ti"}}})
	w, p := openedTo(t, h)
	if status, text := p.logIn(nil); status != http.StatusOK || !strings.Contains(text, `"name":"maria"`) {
		t.Fatalf("back from the provider: %d %s", status, text)
	}
	p.is(t, "at first", "maria operator faturamento,ti")
	knows := func(want string) {
		t.Helper()
		known, others := w.gate.Accounts()
		if got := fmt.Sprint(known, others); got != want {
			t.Errorf("these are known: %s, want %s", got, want)
		}
	}
	knows("[{crm viewer } {maria operator faturamento,ti}] true")
	other := w.replica()
	other.provider = w.provider
	other.open(func() *access.Tokens { return other.tokens })
	p.Transport = other
	p.is(t, "at another replica", "maria operator faturamento,ti")
	p.Transport = w

	h.claims["roles"], h.claims["hospital"] = "viewer", nil
	w.now = w.now.Add(7 * time.Minute)
	p.is(t, "before it is asked again", "maria operator faturamento,ti")
	old := p.copied()
	w.now = w.now.Add(time.Minute)
	p.is(t, "when it is asked again", "maria viewer -")
	knows("[{crm viewer } {maria viewer -}] true")
	other.now, p.Transport = w.now, other
	p.is(t, "at another replica, by the cookie that came back", "maria viewer -")
	p.Transport = w
	old.is(t, "by a copy of the old cookie", "maria viewer -")

	var form map[string]any
	_, text := p.get(console + "/")
	testkit.Must(t, json.Unmarshal([]byte(text), &form))
	stolen := p.copied()
	response, err := p.PostForm(console+"/logout", url.Values{"form_token": {fmt.Sprint(form["form"])}})
	testkit.Must(t, err)
	testkit.Must(t, response.Body.Close())
	stolen.is(t, "a copy of the cookie after the log-out", "200 next=/")
	if told := strings.Join(w.told(), "; "); told != "logged_in maria" {
		t.Errorf("told %q", told)
	}
}

// TestProviderIsAskedAgain: when the provider's last answer expires, people it no longer knows are refused. While it cannot
// be reached everybody is refused, and let in again once it can.
func TestProviderIsAskedAgain(t *testing.T) {
	// A cookie with these has no room for what asks again.
	many := append(slices.Repeat([]string{strings.Repeat("x", 60)}, 42), strings.Repeat("x", 39), "ti")
	for what, tt := range map[string]struct {
		claims map[string]any
		leaves bool
		who    string
	}{
		"who left":              {map[string]any{"roles": "admin"}, true, "maria admin"},
		"too much for a cookie": {map[string]any{"roles": "viewer", "hospital": map[string]any{"teams": many}}, false, "maria viewer " + strings.Join(many, ",")},
	} {
		t.Run(what, func(t *testing.T) {
			tt.claims["preferred_username"] = "maria"
			h := newHospital(t, tt.claims)
			w, p := openedTo(t, h)
			if p.logIn(nil); tt.leaves {
				h.leaves()
			}
			w.now = w.now.Add(15*time.Minute - time.Second)
			p.is(t, "within 15 minutes", tt.who)
			w.now = w.now.Add(time.Second)
			p.is(t, "after 15 minutes", "200 next=/")
		})
	}
	t.Run("away", func(t *testing.T) {
		h := newHospital(t, map[string]any{"preferred_username": "maria", "roles": "admin"})
		h.away = true
		w, p := openedTo(t, h)
		if status, text := p.logIn(nil); status != http.StatusServiceUnavailable || text != "log-in page: provider_unavailable; next=/" || w.logs.FilterMessageSnippet("cannot be reached").Len() != 1 {
			t.Errorf("at the start: %d %s, told %v", status, text, w.told())
		}
		h.away = false
		w.now = w.now.Add(5 * time.Second)
		p.logIn(nil)
		h.away = true
		w.now = w.now.Add(14 * time.Minute)
		p.is(t, "later", "maria admin")
		w.now = w.now.Add(time.Minute)
		if status, text := p.get(console + "/"); status != http.StatusServiceUnavailable || text != "page: provider_unavailable" {
			t.Errorf("after 15 minutes: %d %s", status, text)
		}
		h.away = false
		w.now = w.now.Add(5 * time.Second)
		p.is(t, "when it is back", "maria admin")
	})
}

// TestProviderThatIsSilent: nobody waits for its answer whom it need not be asked of, and it is not asked again at once.
func TestProviderThatIsSilent(t *testing.T) {
	h := newHospital(t, map[string]any{"preferred_username": "maria", "roles": "admin"})
	w, p := openedTo(t, h)
	p.logIn(nil)
	restarted := w.replica()
	restarted.provider = w.provider
	restarted.open(func() *access.Tokens { return restarted.tokens })
	h.silent, h.asked = make(chan struct{}), make(chan struct{}, 10)
	newcomer := make(chan int)
	go func() { newcomer <- restarted.get("/login/oidc", overTLS).status }()
	<-h.asked
	p.Transport = restarted
	p.is(t, "meanwhile", "maria admin")
	if told := restarted.told(); len(told) > 0 {
		t.Errorf("it was waited for until %v", told)
	}
	close(h.silent)
	if status := <-newcomer; status != http.StatusSeeOther {
		t.Errorf("the one who waited is answered %d", status)
	}

	p.Transport = w
	w.now = w.now.Add(8 * time.Minute)
	h.silent, h.asked = make(chan struct{}), make(chan struct{}, 10)
	first := make(chan string)
	go func() { first <- p.copied().who() }()
	<-h.asked
	p.is(t, "while another request asks", "maria admin")
	h.away, w.now = true, w.now.Add(10*time.Second)
	close(h.silent)
	if who := <-first; who != "maria admin" {
		t.Errorf("the one who asked: it is %q", who)
	}
	asked := len(h.asked)
	p.is(t, "after that", "maria admin")
	if len(h.asked) != asked {
		t.Error("it is asked again at once")
	}
}

// What a provider's answer, or somebody who plays its part, cannot get in by.
func TestProviderLogInRefused(t *testing.T) {
	h := newHospital(t, map[string]any{"preferred_username": "maria", "roles": "admin"})
	w, _ := openedTo(t, h)
	own, err := h.SigningKey(t.Context())
	testkit.Must(t, err)
	hmac := jose.SigningKey{Algorithm: jose.HS256, Key: []byte(clientSecret + clientSecret)}
	stranger := newHospital(t, nil)
	other, err := stranger.SigningKey(t.Context())
	testkit.Must(t, err)
	for what, c := range map[string]struct {
		change func(url.Values)
		token  func() string
		code   string
		told   string
	}{
		"another state":   {change: func(q url.Values) { q.Set("state", "x") }, code: "login_stale"},
		"no state":        {change: func(q url.Values) { q.Del("state") }, code: "login_stale"},
		"another code":    {change: func(q url.Values) { q.Set("code", "x") }, code: "login_refused", told: "get tokens: "},
		"no code":         {change: func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }, code: "login_refused", told: `the provider answers "access_denied"`},
		"too late":        {change: func(url.Values) { w.now = w.now.Add(10 * time.Minute) }, code: "login_stale"},
		"another nonce":   {token: func() string { return h.signed(w.now, map[string]any{"nonce": "x"}) }, code: "login_refused", told: "its nonce is not the one that was sent"},
		"no nonce":        {token: func() string { return h.signed(w.now, nil) }, code: "login_refused", told: "its nonce is not the one that was sent"},
		"another issuer":  {token: func() string { return h.signed(w.now, map[string]any{"iss": "https://evil.example"}) }, code: "login_refused", told: "issued by a different provider"},
		"another's token": {token: func() string { return h.signed(w.now, map[string]any{"aud": "crm"}) }, code: "login_refused", told: "expected audience"},
		"an expired one":  {token: func() string { return h.signed(w.now.Add(-2*time.Hour), nil) }, code: "login_refused", told: "token is expired"},
		"another key": {token: func() string {
			return sign(t, jose.SigningKey{Algorithm: own.SignatureAlgorithm(), Key: jose.JSONWebKey{Key: other.Key(), KeyID: own.ID()}}, h.good(w.now, nil))
		}, code: "login_refused", told: "failed to verify"},
		"the client's secret as key": {token: func() string { return sign(t, hmac, h.good(w.now, nil)) }, code: "login_refused", told: "unexpected signature algorithm"},
		"no signature":               {token: func() string { return unsigned(t, h.good(w.now, nil)) }, code: "login_refused", told: "unexpected signature algorithm"},
		"no token":                   {token: func() string { return "x" }, code: "login_refused", told: "malformed jwt"},
	} {
		t.Run(what, func(t *testing.T) {
			began := w.now
			w.now = time.Now()
			w.told()
			p := newPerson(w)
			p.t = t
			if c.token != nil {
				h.forged = c.token()
			}
			status, text := p.logIn(c.change)
			h.forged, w.now = "", began
			if text != "log-in page: "+c.code+"; next=/" || status < 400 {
				t.Errorf("got %d %s", status, text)
			}
			if told := strings.Join(w.told(), "; "); !strings.Contains(told, c.told) || strings.ContainsAny(told, "\n\r") || c.told == "" && told != "" {
				t.Errorf("told %q, want one line with %q", told, c.told)
			}
			p.is(t, "then", "200 next=/")
		})
	}
	for what, c := range map[string]struct {
		claims map[string]any
		told   string
	}{
		"no role":         {map[string]any{"roles": []string{"Administrators", "root"}}, "maria has no role"},
		"a number":        {map[string]any{"roles": 3}, "maria has no role"},
		"a name too many": {map[string]any{"roles": map[string]any{"admin": true}}, "maria has no role"},
		"teams that no browser keeps": {map[string]any{"roles": "admin", "hospital": map[string]any{"teams": slices.Repeat([]string{"x"}, 2000)}},
			"maria has so many teams"},
		"no name": {map[string]any{"roles": "admin", "preferred_username": "m a"}, "is a name"},
	} {
		h.claims = map[string]any{"preferred_username": "maria"}
		maps.Copy(h.claims, c.claims)
		w.told()
		status, text := newPerson(w).logIn(nil)
		if told := strings.Join(w.told(), "; "); status != http.StatusUnauthorized || text != "log-in page: login_refused; next=/" || !strings.Contains(told, c.told) {
			t.Errorf("%s: got %d %s, told %s", what, status, text, told)
		}
	}
	h.moved = stranger.URL + "/token"
	stranger.forged = h.signed(w.now, nil)
	if status, text := newPerson(w).logIn(nil); status < 400 || text != "log-in page: login_refused; next=/" || !strings.Contains(strings.Join(w.told(), "; "), "307") {
		t.Errorf("tokens are given out elsewhere: got %d %s, told %v", status, text, w.logs.All())
	}
	if status, text := newPerson(w).get(console + "/login/callback?state=x&code=y"); status != http.StatusBadRequest || text != "log-in page: login_stale; next=/" {
		t.Errorf("a log-in that nobody began: got %d %s", status, text)
	}
}

// unsigned is a token by alg none.
func unsigned(t *testing.T, claims map[string]any) string {
	t.Helper()
	text, err := json.Marshal(claims)
	testkit.Must(t, err)
	return "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString(text) + "."
}

// No cookie but a session of this provider's client lets anybody in.
func TestProviderSessionsAreSealed(t *testing.T) {
	h := newHospital(t, map[string]any{"preferred_username": "maria", "roles": "admin"})
	w, p := openedTo(t, h)
	_, form := p.get(console + "/login/oidc")
	pending := p.Jar.Cookies(at)
	if requestID.FindString(form) == "" || len(pending) != 1 || pending[0].Name != "__Host-retry-worker-login" {
		t.Fatalf("cookies %v", pending)
	}
	p.logIn(nil)
	session := p.Jar.Cookies(at)[0]
	other, _ := openedTo(t, h)
	other.provider.ClientSecret = "another"
	other.open(func() *access.Tokens { return other.tokens })
	for what, value := range map[string]string{
		"a log-in that is begun": pending[0].Value, "cut off": session.Value[1:], "changed": flipped(session.Value), "empty": "", "short": "AAAA",
	} {
		w.get("/", browser, overTLS, cookie(&http.Cookie{Name: session.Name, Value: value})).sentToLogIn(t, what)
	}
	w.get("/", overTLS, cookie(session)).is(t, "the session", "maria", "admin")
	other.get("/", browser, overTLS, cookie(session)).sentToLogIn(t, "another client's")
	w.now = w.now.Add(12 * time.Hour)
	w.get("/", browser, overTLS, cookie(session)).sentToLogIn(t, "after 12 hours")
	if bytes.Contains([]byte(session.Value), []byte("maria")) || len(session.Value) > 3900 {
		t.Error("the cookie can be read, or is too long")
	}
}

func flipped(text string) string {
	b := []byte(text)
	b[len(b)/2] ^= 1
	return string(b)
}
