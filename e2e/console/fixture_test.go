// Package console drives the console in a real Chromium, with a real worker and the development engine, as the people
// who decide dead letters do.
package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/chromium"
	"retry-worker/e2e/harness/engine"
	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

func TestMain(m *testing.M) { harness.Main(m) }

// fixture is what all tests share: an engine with the bundled models, a portal, the worker with its journal, and a
// browser. Each starts when it is first needed.
type fixture struct {
	mu  sync.Mutex // held while something is started
	dir string     // of the journal and the tokens

	root context.Context // chromedp's, of the browser

	engine *engine.Engine
	pb.GatewayClient
	portal *portal

	worker  *harness.Worker
	guarded bool
	tokens  map[string]string // by role
}

// shared is the fixture.
var shared fixture

// open returns the fixture with a worker that needs no token, as `make run` starts it. The test runs in parallel.
func open(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	return shared.serving(t, false)
}

// openAlone is open for a test that must run alone.
func openAlone(t *testing.T) *fixture {
	t.Helper()
	return shared.serving(t, false)
}

// guarded returns the fixture with a worker that has a token for a viewer, an operator and an admin. The test runs
// alone.
func guarded(t *testing.T) *fixture {
	t.Helper()
	return shared.serving(t, true)
}

func (s *fixture) serving(t *testing.T, guarded bool) *fixture {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.startBrowser(t)
	s.startEngine(t)
	if s.worker != nil && s.guarded == guarded {
		return s
	}
	if s.worker != nil {
		testkit.Must(t, s.worker.Stop(context.Background(), harness.StopTime))
		s.worker = nil
	}
	settings := harness.Settings(s.engine.GatewayAddress(), s.dir)
	if guarded {
		settings = append(settings, "RETRY_WORKER_AUTH_TOKENS_FILE="+filepath.Join(s.dir, "tokens"))
	}
	w := harness.RunWorker(t, harness.Binary(t), settings)
	harness.AtEnd(func() error { return w.Stop(context.Background(), harness.StopTime) })
	s.worker, s.guarded = w, guarded
	return s
}

// startBrowser runs Chromium, once.
func (s *fixture) startBrowser(t *testing.T) {
	t.Helper()
	if s.root != nil {
		return
	}
	root, guarded, stop, err := chromium.Start(chromium.Program.Require(t), "America/Sao_Paulo")
	testkit.Must(t, err)
	s.root = root
	harness.AtEnd(stop)
	if !guarded {
		t.Log("Chromium runs without its sandbox, as this system lets it have none")
	}
}

// startEngine runs the engine with the bundled models and the portal, once.
func (s *fixture) startEngine(t *testing.T) {
	t.Helper()
	if s.engine != nil {
		return
	}
	harness.SkipIfShort(t)
	var err error
	s.engine, err = engine.Start(t.Context())
	testkit.Must(t, err)
	harness.AtEnd(func() error { return s.engine.Stop(context.Background()) })
	conn, err := grpc.NewClient(s.engine.GatewayAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	testkit.Must(t, err)
	s.GatewayClient = pb.NewGatewayClient(conn)
	harness.AtEnd(conn.Close)
	testkit.Must(t, engine.Deploy(t.Context(), s))
	s.portal, err = startPortal(s.engine)
	testkit.Must(t, err)
	harness.AtEnd(s.portal.close)
	s.dir, err = os.MkdirTemp("", "console-e2e-")
	testkit.Must(t, err)
	harness.AtEnd(func() error { return os.RemoveAll(s.dir) })
	s.tokens = map[string]string{}
	for name, token := range harness.Issue(t, filepath.Join(s.dir, "tokens"), map[string]access.Role{
		"test.viewer": access.Viewer, "test.operator": access.Operator, "test.admin": access.Admin,
	}) {
		s.tokens[strings.TrimPrefix(name, "test.")] = token
	}
}

// instance is a process on the engine that a test waits for: its variables when it has ended.
type instance chan map[string]any

// submit starts SUB_06 for a claim whose submissions fail with these texts, one after the other, and then succeed.
// retried is how many retries it has had before.
func (s *fixture) submit(t *testing.T, claimID string, retried int, failures ...string) instance {
	t.Helper()
	variables, err := json.Marshal(map[string]any{"claimId": claimID, "failures": failures, "retryCount": retried, "operadora": claimID})
	testkit.Must(t, err)
	i := make(instance, 1)
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	running.Go(func() {
		r, err := s.CreateProcessInstanceWithResult(ctx, &pb.CreateProcessInstanceWithResultRequest{
			Request:        &pb.CreateProcessInstanceRequest{BpmnProcessId: "SUB_06", Version: -1, Variables: string(variables)},
			RequestTimeout: (24 * time.Hour).Milliseconds(), // by the engine's clock, which the tests move
		})
		if err == nil {
			var result map[string]any
			_ = json.Unmarshal([]byte(r.Variables), &result) // the engine's own
			i <- result
		} else if ctx.Err() == nil {
			t.Errorf("%s: %v", claimID, err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return i
}

// ended waits for the end of the process, and returns its variables.
func (i instance) ended(t *testing.T) (result map[string]any) {
	t.Helper()
	wait.Until(t, "the process's end on the engine", func() bool {
		select {
		case result = <-i:
		default:
		}
		return result != nil
	})
	return result
}

type deadLetter = api.DeadLetter

// find returns the claim's dead letter; nil if it has none.
func (s *fixture) find(t *testing.T, claimID string) *deadLetter {
	t.Helper()
	token := ""
	if s.guarded {
		token = s.tokens["viewer"]
	}
	var page api.Page[deadLetter]
	testkit.Must(t, harness.Ask(t.Context(), "http://"+s.worker.API, token, "/dead-letters?state=all&q="+url.QueryEscape(claimID), nil, &page))
	for i := range page.Items {
		if page.Items[i].Subject.ID == claimID {
			return &page.Items[i]
		}
	}
	return nil
}

// deadLetter waits until the claim has a dead letter for which its process waits.
func (s *fixture) deadLetter(t *testing.T, claimID string) *deadLetter {
	t.Helper()
	var found *deadLetter
	wait.Until(t, "the dead letter of "+claimID+", with its process waiting", func() bool {
		found = s.find(t, claimID)
		return found != nil && found.State == "open" && found.Process == "waiting"
	}, func() string { return fmt.Sprintf("%+v; the worker said last: %s", found, s.worker.LastLine()) })
	return found
}

// subject returns the path of a claim's page.
func subject(claimID string) string { return "/subjects/tiss-submission/" + url.PathEscape(claimID) }
