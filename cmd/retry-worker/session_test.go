package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/golden"
	"retry-worker/internal/testkit/tlstest"
)

// TestSessions plays the sessions of testdata: each line that begins with "$ retry-worker" is run, and what follows is what
// it prints (standard error behind "! ") and its exit code. To add a case, add its "$" line and run
// `go test ./cmd/retry-worker -run Sessions -update`. The other commands change what the lines below find:
//
//	$ export NAME=VALUE       a variable of the environment
//	$ file NAME MODE CONTENT  a file in the folder DIR; \n ends its lines
//	$ cat NAME, $ ls          shows it, or what there is in DIR
//	$ server STATUS TEXT      a server that answers everything so
//	$ cert INSTANT            the certificate DIR/tls.crt holds until then; "ended" it did an hour ago
//	$ sql STATEMENT           changes the journal as the worker never does
//	$ engine OPTION…          starts an engine at ENGINE: tls (its authority is CA), rest, tenants=a,b, token (given out by IDP),
//	                          token=refused, down, fails=CODE or says=TEXT (the next deployment)
func TestSessions(t *testing.T) {
	for folder, stage := range map[string]func(s *session) (names func() []string){
		"sessions": func(s *session) func() []string {
			testkit.Environment(s.t, nil)
			return func() []string { return nil }
		},
		"journal": func(s *session) func() []string {
			s.journal = audited(s.t)
			return func() []string { return nil }
		},
		"deadletters": openForSession,
		"check": func(s *session) func() []string {
			testkit.Environment(s.t, map[string]string{"ZEEBE_INSECURE_CONNECTION": "true"})
			page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				_, _ = w.Write([]byte("<html>Log in"))
			}))
			s.t.Cleanup(page.Close)
			var there atomic.Bool
			there.Store(true)
			provider := openID(s.t, &there)
			nowhere := testkit.Nowhere(s.t)
			return func() []string { return []string{"PAGE", page.URL, "PROVIDER", provider, "NOWHERE", nowhere} }
		},
	} {
		files, err := filepath.Glob("testdata/" + folder + "/*.txt")
		if err != nil || len(files) == 0 {
			t.Fatalf("no %s (%v)", folder, err)
		}
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".txt")
			t.Run(folder+"/"+name, func(t *testing.T) {
				s := &session{t: t, name: name, dir: t.TempDir(), began: time.Now()}
				s.names = stage(s)
				golden.Check(t, file, s.play(testkit.Read(t, file)))
				if g := s.engine; folder == "check" && g != nil && (len(g.Journal())+g.Calls(gateway.CreateProcessInstance) != 0 || g.Counts().HandedOut != 0) {
					t.Error("the check took jobs, or started instances")
				}
			})
		}
	}
}

// session is a folder and what the commands of a session change.
type session struct {
	t         *testing.T
	name, dir string
	// names are what stands in the file for what differs each time, each followed by that.
	names   func() []string
	journal string // the file; empty if there is none
	server  string // its address; empty if there is none
	tokens  []string
	began   time.Time
	engine  *gateway.Gateway
	idp     *gateway.IDP
}

// pairs are names and what they stand for, those that hold others last.
func (s *session) pairs() []string {
	all := append(s.names(), "GOVERSION", runtime.Version(), "VERSION", catalogue.Default().Version) // each word of the catalogue changes that
	for _, now := range []time.Time{s.began, time.Now()} {                                           // it may be midnight
		all = append(all, "IN-90-DAYS", now.UTC().AddDate(0, 0, 90).Format(time.DateOnly), "IN-A-YEAR", now.UTC().AddDate(1, 0, 0).Format(time.DateOnly))
	}
	if s.engine != nil {
		all = append(all, "ENGINE", s.engine.Addr())
	}
	if s.idp != nil {
		all = append(all, "IDP", s.idp.URL())
	}
	if s.journal != "" {
		all = append(all, "JOURNAL", s.journal)
	}
	if s.server != "" {
		all = append(all, "SERVER", s.server)
	}
	return append(all, "DIR", s.dir)
}

// fill puts what names stand for in their place.
func (s *session) fill(line string) string {
	if s.engine != nil && strings.Contains(line, "CA-FILE") {
		line = strings.ReplaceAll(line, "CA-FILE", s.engine.CAFile())
	}
	return strings.NewReplacer(s.pairs()...).Replace(line)
}

// differs is what is another each time where there is an engine, and what stands in the file for it: others' words for what is wrong, addresses, and how
// long something takes or lasts.
var differs = []struct {
	is *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`(ask for the topology|ask for jobs|x509|tls|Post|Get "[^"]*"): [^;\n]*`), "$1: …"},
	{regexp.MustCompile(`127\.0\.0\.1:\d{4,}`), "ADDRESS"},
	{regexp.MustCompile(`valid until [0-9-]+`), "valid until INSTANT"},
	{regexp.MustCompile(`ended at [^ ]*Z`), "ended at INSTANT"},
	{regexp.MustCompile(`(failed to connect to [^:]*): .*`), "$1: …"},
	{regexp.MustCompile(`[^\s"]*retry-worker\.db may be written, \d+ MiB`), "FILE may be written, SOME MiB"},
	{regexp.MustCompile(`\d+ MiB are free`), "SOME MiB are free"},
	{regexp.MustCompile(`(differs by|ends in) -?[0-9ms]+`), "$1 SECONDS"},
}

var (
	aToken = regexp.MustCompile(`rwt_[a-z2-7]{52}`)
	// someHash is that of a token which is not shown, or the head behind a rebuild.
	someHash = regexp.MustCompile(`( admin - |head +4:)[0-9a-f]{64}`)
)

// hide puts names in the place of what they stand for; tokens and their hashes are numbered as they come.
func (s *session) hide(text string) string {
	named := s.pairs()
	slices.Reverse(named)
	text = strings.NewReplacer(named...).Replace(text)
	text = aToken.ReplaceAllStringFunc(text, func(token string) string {
		if !slices.Contains(s.tokens, token) {
			s.tokens = append(s.tokens, token)
		}
		return fmt.Sprint("TOKEN-", slices.Index(s.tokens, token)+1)
	})
	for i, token := range s.tokens {
		sum := sha256.Sum256([]byte(token))
		text = strings.ReplaceAll(text, hex.EncodeToString(sum[:]), fmt.Sprint("HASH-", i+1))
	}
	text = someHash.ReplaceAllString(text, "${1}HASH")
	for _, d := range differs {
		if s.engine == nil {
			break
		}
		text = d.is.ReplaceAllString(text, d.as)
	}
	return text
}

// play runs a session and returns it with what is printed now.
func (s *session) play(script string) string {
	var played strings.Builder
	printed := false // what a line begins with there means nothing
	for line := range strings.Lines(script) {
		if printed = printed && !strings.HasPrefix(line, "exit ") && !strings.HasPrefix(line, "$ "); printed {
			continue
		}
		command, found := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ ")
		if !found {
			if strings.HasPrefix(line, "#") {
				played.WriteString(line)
			}
			continue
		}
		played.WriteString(line)
		verb, rest, _ := strings.Cut(command, " ")
		if verb != "retry-worker" {
			said := s.do(verb, s.fill(rest))
			played.WriteString(s.hide(said))
			printed = said != ""
			continue
		}
		printed = true
		r := retryWorker(words(s.t, s.fill(rest))...)
		played.WriteString(s.hide(r.stdout))
		for problem := range strings.Lines(s.hide(r.stderr)) {
			played.WriteString("! " + problem)
		}
		fmt.Fprintf(&played, "exit %d\n\n", r.code)
	}
	return played.String()
}

// do carries out a command that is not the program's, and returns what it shows.
func (s *session) do(verb, rest string) (shown string) {
	s.t.Helper()
	name, content, _ := strings.Cut(rest, " ")
	switch verb {
	case "export":
		name, value, _ := strings.Cut(rest, "=")
		s.t.Setenv(name, value)
	case "file":
		mode, content, _ := strings.Cut(content, " ")
		bits, err := strconv.ParseUint(mode, 8, 32)
		testkit.Must(s.t, err)
		path := filepath.Join(s.dir, name)
		testkit.Must(s.t, os.WriteFile(path, []byte(strings.ReplaceAll(content, `\n`, "\n")), 0o600))
		testkit.Must(s.t, os.Chmod(path, os.FileMode(bits)))
	case "cat":
		return testkit.Read(s.t, filepath.Join(s.dir, name)) + "exit 0\n\n"
	case "ls":
		entries, err := os.ReadDir(s.dir)
		testkit.Must(s.t, err)
		for _, e := range entries {
			info, err := e.Info()
			testkit.Must(s.t, err)
			shown += fmt.Sprintln(info.Mode(), e.Name())
		}
		return shown + "exit 0\n\n"
	case "server":
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			status, _ := strconv.Atoi(name)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(content))
		}))
		s.t.Cleanup(server.Close)
		s.server = strings.TrimPrefix(server.URL, "http://")
		s.t.Setenv("RETRY_WORKER_HTTP_ADDR", s.server)
	case "cert":
		until, err := time.Parse(time.RFC3339, name)
		if err != nil {
			until = time.Now().Add(-time.Hour)
		}
		tlstest.NewAuthority(s.t).IssueUntil(s.t, filepath.Join(s.dir, "tls.crt"), filepath.Join(s.dir, "tls.key"), "console", until)
	case "sql":
		alter(s.t, s.journal, rest)
	case "engine":
		s.start(strings.Fields(rest))
	default:
		s.t.Fatalf("there is no command %q", verb)
	}
	return ""
}

// start starts an engine, or has the one there is refuse the next deployment.
func (s *session) start(options []string) {
	if said, is := strings.CutPrefix(strings.Join(options, " "), "says="); is {
		s.engine.Inject(gateway.Fault{Method: gateway.DeployResource, Code: codes.InvalidArgument, Message: strings.ReplaceAll(said, `\n`, "\n"), Times: 1})
		return
	}
	value := func(name string) string {
		for _, o := range options {
			if v, is := strings.CutPrefix(o, name+"="); is {
				return v
			}
		}
		return ""
	}
	o := gateway.Options{TLS: slices.Contains(options, "tls"), REST: slices.Contains(options, "rest")}
	if tenants := value("tenants"); tenants != "" {
		o.Tenants = strings.Split(tenants, ",")
	}
	g := gateway.New(s.t, o)
	s.engine = g
	s.t.Setenv("ZEEBE_ADDRESS", g.Addr())
	if slices.Contains(options, "token") || value("token") != "" {
		s.idp = gateway.NewIDP(s.t, "worker", "canary-secret", "zeebe-api")
		g.RequireToken(func(token string) bool { return value("token") == "" && s.idp.Accepts(token) })
	}
	for code := range codes.Code(20) {
		if code.String() == value("fails") {
			g.Inject(gateway.Fault{Method: gateway.Topology, Code: code})
		}
	}
	if slices.Contains(options, "down") {
		g.Down()
	}
}

// words splits a command as a shell does, as far as white space and quotes go; \n and \r in double quotes are these characters.
func words(t *testing.T, command string) (all []string) {
	for rest := strings.TrimSpace(command); rest != ""; rest = strings.TrimLeft(rest, " ") {
		word := ""
		for rest != "" && rest[0] != ' ' {
			if quote := rest[0]; quote == '\'' || quote == '"' {
				inner, after, closed := strings.Cut(rest[1:], string(quote))
				if !closed {
					t.Fatalf("%s: no closing quote", command)
				}
				if quote == '"' {
					inner = strings.NewReplacer(`\n`, "\n", `\r`, "\r").Replace(inner)
				}
				word, rest = word+inner, after
				continue
			}
			end := strings.IndexAny(rest, ` '"`)
			if end < 0 {
				end = len(rest)
			}
			word, rest = word+rest[:end], rest[end:]
		}
		all = append(all, word)
	}
	return all
}
