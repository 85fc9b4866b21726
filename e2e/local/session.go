package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"retry-worker/bpmn"
	"retry-worker/e2e/harness/zeebe"
	"retry-worker/internal/demo"
	adapter "retry-worker/internal/zeebe"
)

// session is one run.
type session struct {
	folder, version string
	port            int // of the console
	screen          *screen
	hard            context.Context // its end ends everything at once
	clock           *zeebe.Clock    // the broker's and the worker's: what the console shows of a claim are the ladder's minutes
}

// run shows the whole, returns when ctx ends or something fails, and ends what it started. Its error is errAsked, or says on
// one line what failed, why and what to do.
func (s *session) run(ctx context.Context) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	var stops []func()
	defer func() {
		fail(err) // unless there is a cause already: what ends from here on is no failure
		for _, stop := range slices.Backward(stops) {
			stop()
		}
		err = context.Cause(ctx)
	}()
	broker, err := s.startZeebe(ctx, fail)
	if err != nil {
		return err
	}
	stops = append(stops, func() {
		if err := broker.Stop(s.hard); err != nil {
			s.screen.say("%v", err)
		}
	})
	if s.clock, err = broker.ShareClock(ctx, filepath.Join(s.folder, "clock")); err != nil {
		return err
	}
	stops = append(stops, func() { _ = s.clock.Close() })
	client, err := adapter.Dial(adapter.Options{Address: broker.GatewayAddress(), Plaintext: true, PlainErrors: true}, zap.NewNop())
	if err != nil {
		return fmt.Errorf("connect to Zeebe: %w", err)
	}
	stops = append(stops, func() { _ = client.Close() })
	if err := s.deploy(ctx, client); err != nil {
		return err
	}
	w, err := s.startWorker(broker.GatewayAddress(), fail)
	if err != nil {
		return err
	}
	stops = append(stops, w.stop, func() { s.screen.say("\nStopping the worker and Zeebe. Ctrl-C again ends it at once.") })
	return demo.Run(ctx, demo.Options{
		Engine: client, Out: s.screen, Ask: w.client().Ask, Clock: s.clock, WorkerLog: w.log.Name(),
		Run: time.Now().Unix() % 1_000_000, Invitation: s.whereToLook(w, broker.GatewayAddress()),
	})
}

// startZeebe finds Java and Zeebe, fetches what is not there, and starts a broker. Its end before its time is a failure.
func (s *session) startZeebe(ctx context.Context, fail context.CancelCauseFunc) (*zeebe.Broker, error) {
	log, err := os.Create(filepath.Join(s.folder, "zeebe.log"))
	if err != nil {
		return nil, fmt.Errorf("make a log: %w", err)
	}
	java, err := zeebe.ProvideJava(ctx, s.screen.progress)
	if err != nil {
		return nil, err
	}
	s.screen.row("Java", "%s", java)
	home, err := zeebe.Fetch(ctx, s.version, s.screen.progress)
	if err != nil {
		return nil, err
	}
	s.screen.row("Zeebe", "%s, in %s; starting it takes some 10 s", s.version, home)
	broker, err := zeebe.Start(ctx, zeebe.Options{Version: s.version, Output: log})
	if err != nil {
		return nil, fmt.Errorf("%w; a machine with 1 GB of memory and 2 GB of disk to spare should do; all it said is in %s", err, log.Name())
	}
	s.screen.row("", "up; gateway at %s, without TLS", broker.GatewayAddress())
	done := broker.Done()
	go func() {
		<-done
		fail(fmt.Errorf("Zeebe ended too early; it said last: %s; see %s, and run it again", cmp.Or(broker.LastLine(), "nothing"), log.Name()))
	}()
	return broker, nil
}

// deploy gives Zeebe the bundled models.
func (s *session) deploy(ctx context.Context, client *adapter.Client) error {
	for _, m := range bpmn.Models() {
		done, err := client.Deploy(ctx, m.Name, m.Content, "")
		if err != nil {
			return err
		}
		for _, d := range done {
			s.screen.row("Model", "%s version %d deployed", d.ProcessID, d.Version)
		}
	}
	return nil
}

// whereToLook ends with the console: it is what the viewer is to see last.
func (s *session) whereToLook(w *worker, gateway string) string {
	binary, _ := filepath.Abs(filepath.Join("bin", "retry-worker"))
	var text strings.Builder
	for _, row := range [][2]string{
		{"Metrics", "http://" + w.app.OpsAddr() + "/metrics"},
		{"Ready", "http://" + w.app.OpsAddr() + "/readyz"},
		{"Log", w.log.Name()},
		{"History", fmt.Sprintf("RETRY_WORKER_DATABASE_URL=%s %s history CLM-…, with a claim's number from above", s.database(), binary)},
		{"", "the same for MSG-… --policy whatsapp-message, JOB-… --policy failed-job, QUEUE-… --policy job-queue"},
		{"API", w.console() + "/api/v1/subjects/tiss-submission/CLM-…"},
		{"Check", fmt.Sprintf("ZEEBE_ADDRESS=%s ZEEBE_INSECURE_CONNECTION=true %s check", gateway, binary)},
		{"Stop", "Ctrl-C; it removes the logs, the journal and Zeebe's data"},
		{"Console", w.console() + "/dead-letters: read why one is there, retry it with a reason, and see here how its process goes on"},
	} {
		fmt.Fprintf(&text, rowFormat, row[0], row[1])
	}
	return strings.TrimRight(text.String(), "\n")
}

// database is the run's own journal; it goes with the run.
func (s *session) database() string { return "sqlite:" + filepath.Join(s.folder, "retry-worker.db") }
