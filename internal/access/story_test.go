package access_test

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// TestStories plays the files of testdata/stories: who has a token, what is asked, and what becomes of it. README.md there has
// the commands.
func TestStories(t *testing.T) {
	golden.Stories(t, "testdata/stories", func(t *testing.T, file string) { golden.Story(t, file, (&story{t: t}).play) })
}

// story is a gate and another replica of it, and what people hold.
type story struct {
	t *testing.T
	*world
	other  *world
	tokens map[string]access.Token
	// held are secrets and the values of cookies, by name; names are those of the cookies.
	held, names map[string]string
}

func (s *story) play(command string) string {
	verb, rest, _ := strings.Cut(command, " ")
	words := strings.Fields(rest)
	switch verb {
	case "world":
		s.begin(words)
	case "tokens": // in place of those before; who had one keeps it
		s.publish(s.issued(words)...)
	case "new": // another token for somebody, who keeps the old one by the name old
		s.held["old"], s.held[words[0]] = s.held[words[0]], ""
	case "time": // since the beginning
		s.now = s.instant(words[0])
	case "replica": // with a clock of its own
		s.other = s.replica()
		s.other.now = s.instant(words[0])
	case "store":
		s.ended.down, s.ended.readOnly = map[string]error{"down": errors.New("no answer")}[words[0]], map[string]error{"full": errors.New("no room")}[words[0]]
	case "told":
		return strings.Join(s.told(), "\n") + "\n"
	case "ended":
		return s.kept()
	default:
		return s.request(verb, words)
	}
	return ""
}

func (s *story) instant(since string) time.Time {
	if since == "expiry" {
		return s.tokens["maria"].Expires
	}
	d, err := time.ParseDuration(since)
	testkit.Must(s.t, err)
	return start.Add(d)
}

// begin has a world with those tokens, or without any.
func (s *story) begin(words []string) {
	s.tokens, s.held, s.names = map[string]access.Token{}, map[string]string{}, map[string]string{}
	switch {
	case slices.Contains(words, "local"):
		s.world = newLocalWorld(s.t)
	case slices.Contains(words, "provider"): // alone, which nobody asks
		s.world = &world{t: s.t, now: start, provider: &access.Provider{Issuer: "http://127.0.0.1:1", ClientID: "retry-worker"}}
		s.open(nil)
	default:
		s.world = newWorld(s.t, s.issued(words)...)
	}
	s.issued([]string{"stranger=admin"}) // whose token nobody knows
	s.held["big"], s.held["long"] = strings.Repeat("x", 64<<10), strings.Repeat("a", 1999)
}

// issued are tokens such as maria=operator/2026-11-03/ti,faturamento.
func (s *story) issued(words []string) (all []access.Token) {
	for _, word := range words {
		name, of, is := strings.Cut(word, "=")
		if !is {
			continue
		}
		f := append(strings.Split(of, "/"), "", "")
		role, err := access.ParseRole(f[0])
		testkit.Must(s.t, err)
		if s.held[name] == "" {
			s.held[name], s.tokens[name] = tokenUntil(s.t, name, role, cmp.Or(f[1], "never"))
		}
		made := s.tokens[name]
		made.Role, made.Teams = role, access.Teams(f[2])
		all = append(all, made)
	}
	return all
}

// security are the headers that every answer has.
var security = []string{"X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy", "Cache-Control", "Cross-Origin-Opener-Policy",
	"Cross-Origin-Resource-Policy", "Permissions-Policy", "Content-Security-Policy"}

// kept are the sessions that ended early, as the store has them.
func (s *story) kept() (lines string) {
	for name, value := range s.held {
		if until, is := s.ended.until[s.gate.IDOf(value)]; is {
			lines += fmt.Sprintln(name, "until", until.Sub(start))
		}
	}
	return lines + fmt.Sprintf("%d in all\n", len(s.ended.until))
}

var placeholder = regexp.MustCompile(`\{(form:)?(\w+)(?::(\w+))?\}`)

// fill puts in what somebody holds: {maria}, {maria:55} cut off there, {maria:upper}, {one:payload}, and {form:one}, the form token
// of that session.
func (s *story) fill(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(name string) string {
		m := placeholder.FindStringSubmatch(name)
		value := s.held[m[2]]
		if m[1] != "" {
			options := []option{}
			if m[2] != "nobody" {
				options = append(options, cookie(&http.Cookie{Name: s.names[m[2]], Value: value}))
			}
			value, _ = s.get("/", options...).body["form"].(string)
		}
		payload, signature, _ := strings.Cut(value, ".")
		if n, err := strconv.Atoi(m[3]); err == nil {
			return value[:n]
		}
		return cmp.Or(map[string]string{"upper": strings.ToUpper(value), "payload": payload, "signature": signature, "hash": fmt.Sprintf("%x", sha256.Sum256([]byte(value)))}[m[3]], value)
	})
}

// request sends one and says how it is answered. GET ADDRESS, FORM ADDRESS FIELDS, JSON ADDRESS, LOGIN NAME SESSION, or another
// method; then how: browser, tls, replica, by=, with=, host=, from=, Header:value; and $Header,
// security, message, cookie, ends and page for what to show.
func (s *story) request(verb string, words []string) string {
	w, address, body := s.world, words[0], ""
	options, show := []option{}, []string{}
	method, how := verb, 1
	switch verb {
	case "FORM", "LOGIN":
		method, body, how = http.MethodPost, s.fill(words[1]), 2
		options = append(options, header("Content-Type", "application/x-www-form-urlencoded"))
		if verb == "LOGIN" {
			address, body = "/login", url.Values{"token": {s.held[words[0]]}, "next": {"/dead-letters?state=open"}}.Encode()
		}
	case "JSON":
		method, body = http.MethodPost, `{"reason":"corrected"}`
		options = append(options, header("Content-Type", "application/json"))
	}
	for _, word := range words[how:] {
		name, value, _ := strings.Cut(s.fill(word), "=")
		switch {
		case word == "browser":
			options = append(options, browser)
		case word == "tls":
			options = append(options, overTLS)
		case word == "replica":
			w = s.other
		case name == "by":
			options = append(options, bearer(cmp.Or(s.held[value], value)))
		case name == "with": // the cookie of a session, or a value of its own
			name := cmp.Or(s.names[value], "retry-worker-session")
			options = append(options, cookie(&http.Cookie{Name: name, Value: cmp.Or(s.held[value], value)}))
		case name == "host":
			options = append(options, host(value))
		case name == "from":
			options = append(options, from(value))
		case strings.HasPrefix(word, "$"), slices.Contains([]string{"message", "cookie", "ends", "page", "security"}, word):
			show = append(show, word)
		default:
			name, value, _ := strings.Cut(word, ":")
			options = append(options, header(name, s.fill(strings.ReplaceAll(value, "+", " "))))
		}
	}
	a := w.ask(method, s.fill(address), body, options...)
	if verb == "LOGIN" && a.status == http.StatusSeeOther {
		c := a.cookie(s.t)
		s.held[words[1]], s.names[words[1]] = c.Value, c.Name
	}
	said := []string{strconv.Itoa(a.status)}
	switch code, _ := a.body["error"].(string); {
	case code != "":
		a.refused(s.t, address, a.status, code)
		said = append(said, code)
	case a.body != nil:
		said = append(said, fmt.Sprint(a.body["name"], " ", a.body["role"]))
		if a.body["reason"] != "" {
			said = append(said, fmt.Sprint(a.body["reason"]))
		}
	default:
		said = append(said, cmp.Or(a.header.Get("Location"), a.text))
	}
	for _, what := range show {
		switch what {
		case "message":
			said = append(said, fmt.Sprint("\n  ", a.body["message"]))
		case "ends":
			said = append(said, fmt.Sprint("\n  ends ", a.body["ends"]))
		case "page":
			said = append(said, fmt.Sprintf("\n  tokens %t, provider %t", w.page.Tokens, w.page.Provider))
		case "security":
			for _, name := range security {
				said = append(said, "\n  "+name+": "+a.header.Get(name))
			}
		case "cookie":
			for _, c := range (&http.Response{Header: a.header}).Cookies() {
				c.Value = map[bool]string{true: "", false: "VALUE"}[c.Value == ""]
				said = append(said, "\n  "+c.String())
			}
		default:
			said = append(said, "\n  "+what[1:]+": "+a.header.Get(what[1:]))
		}
	}
	text := strings.NewReplacer(" \n", "\n", s.held["long"], "LONG").Replace(strings.Join(said, " "))
	for _, name := range slices.Sorted(maps.Keys(s.held)) {
		if len(s.held[name]) > 20 && strings.Contains(text, s.held[name]) {
			s.t.Errorf("%s: it tells what %s holds", address, name)
		}
	}
	return text + "\n"
}
