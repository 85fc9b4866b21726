package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"retry-worker/bpmn"
	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/chromium"
	"retry-worker/e2e/harness/zeebe"
)

// site is what all tests share: a broker with the bundled models, the worker with its journal, the hospital's portal,
// and a browser. Each is started when it is first asked for.
type site struct {
	dir string // the journal's and the tokens'

	browser *chromium.Browser
	root    context.Context // chromedp's, of the browser
	drop    context.CancelFunc

	broker *zeebe.Broker
	conn   *grpc.ClientConn
	pb.GatewayClient
	hospital *hospital

	worker  *harness.Process
	guarded bool
	address string // of API and pages
	tokens  map[string]string
}

// shared is the site.
var shared site

// open is the site with a worker that needs no token, as `make run` starts it.
func open(t *testing.T) *site {
	t.Helper()
	return serving(t, false)
}

// guarded is the site with a worker that asks for tokens: viewer, operator and admin.
func guarded(t *testing.T) *site {
	t.Helper()
	return serving(t, true)
}

func serving(t *testing.T, guarded bool) *site {
	t.Helper()
	s := &shared
	s.startBrowser(t)
	s.startBroker(t)
	if s.worker != nil && s.guarded == guarded {
		return s
	}
	if s.worker != nil {
		must(t, s.worker.Stop(context.Background(), stopTime))
		s.worker = nil
	}
	s.serve(t, guarded)
	return s
}

// startBrowser runs Chromium, once.
func (s *site) startBrowser(t *testing.T) {
	t.Helper()
	if s.browser != nil {
		return
	}
	harness.AtEnd(s.close)
	b, err := chromium.Start(t.Context(), chromium.Require(t), chromium.Options{Timezone: "America/Sao_Paulo"})
	must(t, err)
	s.browser = b
	if why := b.Unguarded(); why != "" {
		t.Log("Chromium runs without its sandbox: ", why)
	}
	allocator, cancelAllocator := remote.NewAllocator(context.Background(), b.URL(), remote.NoModifyURL)
	root, cancelRoot := chromedp.NewContext(allocator)
	s.root, s.drop = root, func() { cancelRoot(); cancelAllocator() }
	must(t, chromedp.Do(root))
}

// startBroker runs Zeebe with the bundled models and the hospital's portal, once.
func (s *site) startBroker(t *testing.T) {
	t.Helper()
	if s.broker != nil {
		return
	}
	zeebe.Require(t, version)
	var err error
	s.broker, err = zeebe.Start(t.Context(), zeebe.Options{Version: version, Progress: func(p zeebe.Progress) { t.Log(p) }})
	must(t, err)
	s.conn, err = grpc.NewClient(s.broker.GatewayAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	s.GatewayClient = pb.NewGatewayClient(s.conn)
	var resources []*pb.Resource
	for _, m := range bpmn.Models() {
		resources = append(resources, &pb.Resource{Name: m.Name, Content: m.Content})
	}
	_, err = s.DeployResource(t.Context(), &pb.DeployResourceRequest{Resources: resources})
	must(t, err)
	s.hospital, err = openHospital(s.broker)
	must(t, err)
}

// folder for the journal, made once.
func (s *site) folder(t *testing.T) {
	t.Helper()
	if s.dir != "" {
		return
	}
	var err error
	s.dir, err = os.MkdirTemp("", "console-e2e-")
	must(t, err)
}

// serve starts the worker on the journal that all tests share, and returns when it is ready.
func (s *site) serve(t *testing.T, guarded bool) {
	t.Helper()
	s.folder(t)
	env := []string{
		"ZEEBE_ADDRESS=" + s.broker.GatewayAddress(), "ZEEBE_INSECURE_CONNECTION=true", "PATH=" + os.Getenv("PATH"),
		"RETRY_WORKER_HTTP_ADDR=127.0.0.1:0", "RETRY_WORKER_OPS_ADDR=127.0.0.1:0", "RETRY_WORKER_DATABASE_URL=" + s.database(),
	}
	if guarded {
		s.makeTokens(t)
		env = append(env, "RETRY_WORKER_AUTH_TOKENS_FILE="+s.tokensFile())
	}
	p, err := harness.Start(harness.Command{Path: harness.Binary(t), Args: []string{"serve"}, Env: env, Dir: s.dir})
	must(t, err)
	s.worker, s.guarded, s.address = p, guarded, ""
	var ops string
	eventually(t, "the worker serving", func() (bool, any) {
		for _, line := range p.Lines() {
			var l struct{ Message, Ops, API string }
			if json.Unmarshal([]byte(line), &l) == nil && l.Message == "serving" {
				s.address, ops = l.API, l.Ops
			}
		}
		return s.address != "", p.LastLine()
	})
	eventually(t, "the worker ready", func() (bool, any) {
		answer, err := http.Get("http://" + ops + "/readyz")
		if err != nil {
			return false, err
		}
		_ = answer.Body.Close() // read only
		return answer.StatusCode == http.StatusOK, p.LastLine()
	})
}

func (s *site) database() string   { return "sqlite:" + filepath.Join(s.dir, "journal.db") }
func (s *site) tokensFile() string { return filepath.Join(s.dir, "tokens") }

// run is a command of the program under test, on the site's journal.
func (s *site) run(t *testing.T, args ...string) []byte {
	t.Helper()
	s.folder(t)
	cmd := exec.Command(harness.Binary(t), args...)
	cmd.Env, cmd.Dir = []string{"RETRY_WORKER_DATABASE_URL=" + s.database()}, s.dir
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && len(out) == 0 {
		t.Fatalf("retry-worker %s: %v: %s", strings.Join(args, " "), err, failed.Stderr)
	}
	return out
}

// makeTokens makes one for each role, by the program's own command.
func (s *site) makeTokens(t *testing.T) {
	t.Helper()
	if s.tokens != nil {
		return
	}
	tokens := map[string]string{}
	for _, role := range []string{"viewer", "operator", "admin"} {
		var made struct{ Token string }
		must(t, json.Unmarshal(s.run(t, "token", "new", "--name", "test."+role, "--role", role, "--file", s.tokensFile(), "-o", "json"), &made))
		tokens[role] = made.Token
	}
	s.tokens = tokens
}

func (s *site) close() error {
	ctx := context.Background()
	var all error
	if s.worker != nil {
		all = errors.Join(all, s.worker.Stop(ctx, stopTime))
	}
	if s.hospital != nil {
		all = errors.Join(all, s.hospital.close())
	}
	if s.conn != nil {
		all = errors.Join(all, s.conn.Close())
	}
	if s.broker != nil {
		all = errors.Join(all, s.broker.Stop(ctx))
	}
	if s.browser != nil {
		s.drop()
		all = errors.Join(all, s.browser.Stop(ctx))
	}
	if s.dir != "" {
		all = errors.Join(all, os.RemoveAll(s.dir))
	}
	return all
}

// instance is a process on the broker that a test waits for.
type instance struct {
	mu        sync.Mutex
	variables map[string]any // when it has ended
	err       error
}

// submit starts SUB_06 for a claim whose submissions fail with texts, one after the other, and then succeed.
// retried is how many retries were made before.
func (s *site) submit(t *testing.T, claimID string, retried int, failures ...string) *instance {
	t.Helper()
	variables, err := json.Marshal(map[string]any{"claimId": claimID, "failures": failures, "retryCount": retried})
	must(t, err)
	i := &instance{}
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	running.Go(func() {
		r, err := s.CreateProcessInstanceWithResult(ctx, &pb.CreateProcessInstanceWithResultRequest{
			Request:        &pb.CreateProcessInstanceRequest{BpmnProcessId: "SUB_06", Version: -1, Variables: string(variables)},
			RequestTimeout: (24 * time.Hour).Milliseconds(), // by the broker's clock, which the tests move
		})
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.err = err; err == nil {
			i.err = json.Unmarshal([]byte(r.Variables), &i.variables)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return i
}

// ended waits until the broker says that the process has ended, and returns its variables.
func (i *instance) ended(t *testing.T) map[string]any {
	t.Helper()
	eventually(t, "the process's end on the broker", func() (bool, any) {
		i.mu.Lock()
		defer i.mu.Unlock()
		return i.variables != nil, i.err
	})
	return i.variables
}

// letter is a dead letter, as the API has it.
type letter struct {
	ID, State, Process, Delivery, Reason, ResponsibleTeam, Error string
	Subject                                                      struct{ ID string }
}

// find is the claim's dead letter by the API; nil where there is none.
func (s *site) find(t *testing.T, claimID string) *letter {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, "http://"+s.address+"/api/v1/dead-letters?state=all&q="+url.QueryEscape(claimID), nil)
	must(t, err)
	if s.guarded {
		request.Header.Set("Authorization", "Bearer "+s.tokens["viewer"])
	}
	answer, err := http.DefaultClient.Do(request)
	must(t, err)
	defer answer.Body.Close()
	var page struct{ Items []letter }
	must(t, json.NewDecoder(answer.Body).Decode(&page))
	for i := range page.Items {
		if page.Items[i].Subject.ID == claimID {
			return &page.Items[i]
		}
	}
	return nil
}

// letter waits until the claim is a dead letter that its process waits for.
func (s *site) letter(t *testing.T, claimID string) *letter {
	t.Helper()
	var found *letter
	eventually(t, "the dead letter of "+claimID+", with its process waiting", func() (bool, any) {
		found = s.find(t, claimID)
		return found != nil && found.State == "open" && found.Process == "waiting", fmt.Sprintf("%+v; the worker said last: %s", found, s.worker.LastLine())
	})
	return found
}

// subject is the path of a claim's page.
func subject(claimID string) string { return "/subjects/tiss-submission/" + url.PathEscape(claimID) }
