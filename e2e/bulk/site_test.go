package bulk

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"retry-worker/bpmn"
	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/mail"
	"retry-worker/e2e/harness/zeebe"
	"retry-worker/internal/access"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/testkit"
)

const (
	// times is how much faster the worker's clock goes where runs are carried out: 60 a minute are 30 in a second.
	times = 30
	// slowly is how fast it goes before.
	slowly = 1.01
	// jobTimeout is how long a job waits that somebody had in his hands when he, or the broker, was killed.
	jobTimeout = 5 * time.Second
	// behind is how far the worker's clock is behind the broker's, which is the machine's: no timer of a retry that is to be
	// made at once lies in the broker's future, however fast the worker's goes for half an hour.
	behind = 24 * time.Hour
)

// site is a hospital on one day: a broker, the portals, a mail server, and the lives of one worker on one journal.
type site struct {
	t       *testing.T
	broker  *zeebe.Broker
	gateway pb.GatewayClient
	history *history
	portal  *portal
	mail    *mail.Server
	clock   testkit.FastClock
	folder  string
	worker  *harness.Worker
	secrets map[string]string // tokens by the names of who has them
}

// TestADayOfBulkRuns plays everything on one broker and one journal, one after the other.
func TestADayOfBulkRuns(t *testing.T) {
	s := openSite(t)
	for _, play := range []struct {
		name string
		play func()
	}{{"one credential", s.playCredential}, {"two people", s.playPeople}} {
		if !t.Run(play.name, func(t *testing.T) {
			day := s.t
			s.t = t
			defer func() { s.t = day }()
			play.play()
		}) {
			return // the next would begin with what this one left
		}
	}
}

// people of the hospital, by their names.
var people = map[string]access.Role{"ana": access.Admin, "bruno": access.Admin, "vera": access.Viewer}

func openSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, history: newHistory(), folder: t.TempDir()}
	s.must(s.startMail())
	s.must(s.startBroker())
	s.must(s.deploy())
	s.portal = openPortal(t, s.broker)
	s.secrets = harness.Issue(t, s.path("tokens"), people)
	harness.Replace(t, s.path("policies.yaml"), s.policies())
	s.must(os.WriteFile(s.path("password"), []byte(s.mail.Password()), 0o600))
	s.clock = harness.ClockAt(time.Now().Add(-behind), slowly)
	t.Cleanup(func() {
		if t.Failed() {
			s.explain()
		}
	})
	return s
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) path(name string) string { return filepath.Join(s.folder, name) }

func (s *site) startMail() (err error) {
	if s.mail, err = mail.Start(s.t.Context(), mail.Require(s.t), mail.Settings{}); err != nil {
		return err
	}
	s.t.Cleanup(func() {
		if err := s.mail.Stop(context.Background()); err != nil {
			s.t.Error(err)
		}
	})
	return nil
}

func (s *site) startBroker() (err error) {
	zeebe.Require(s.t, version)
	s.broker, err = zeebe.Start(s.t.Context(), zeebe.Options{
		Version: version, Env: exporter, Output: s.history, Progress: func(p zeebe.Progress) { s.t.Log(p) },
	})
	if err != nil {
		return err
	}
	s.t.Cleanup(func() {
		if err := s.broker.Stop(context.Background()); err != nil {
			s.t.Error(err)
		}
	})
	conn, err := grpc.NewClient(s.broker.GatewayAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	s.gateway = pb.NewGatewayClient(conn)
	return nil
}

func (s *site) deploy() error {
	var resources []*pb.Resource
	for _, m := range bpmn.Models() {
		resources = append(resources, &pb.Resource{Name: m.Name, Content: m.Content})
	}
	_, err := s.gateway.DeployResource(s.t.Context(), &pb.DeployResourceRequest{Resources: resources})
	return err
}

// hurry makes the next lives' clock go faster, from what it shows now.
func (s *site) hurry() { s.clock = harness.ClockAt(s.clock.Now(), times) }

// begin a life of the worker, which ends with the test at the latest.
func (s *site) begin() {
	s.t.Helper()
	s.worker = harness.StartWorker(s.t, harness.BinaryWithClock(s.t), harness.Settings(s.broker.GatewayAddress(), s.folder, append(harness.Clock(s.clock),
		"RETRY_WORKER_AUTH_TOKENS_FILE="+s.path("tokens"), "RETRY_WORKER_POLICIES_FILE="+s.path("policies.yaml"),
		"RETRY_WORKER_SMTP_URL="+s.mail.URL(), "RETRY_WORKER_SMTP_PASSWORD_FILE="+s.path("password"), "RETRY_WORKER_SMTP_CA_FILE="+s.mail.CertificateFile(),
		"RETRY_WORKER_MAIL_FROM=retry-worker@hospital.example", "RETRY_WORKER_PUBLIC_URL=https://retry.hospital.example",
		"RETRY_WORKER_NOTIFY_INTERVAL=24h", "RETRY_WORKER_JOB_TIMEOUT="+jobTimeout.String())...))
}

// policies are the default ones, with where each team is told.
func (s *site) policies() string {
	s.t.Helper()
	return harness.Teams(s.t, string(catalogue.Default().YAML()), map[string][]string{
		"ti": {"email: [ti@hospital.example]"}, "cadastro": {"email: [cadastro@hospital.example]"}, "faturamento": {"email: [faturamento@hospital.example]"},
	})
}

// submitters start instances at a time: the broker makes many durable at once.
const submitters = 8

// submit n claims of a kind, numbered from first on.
func (s *site) submit(kind string, first, n int) {
	s.t.Helper()
	var running errgroup.Group
	running.SetLimit(submitters)
	for i := range n {
		running.Go(func() error { return s.create(claimID(kind, first+i)) })
	}
	s.must(running.Wait())
}

func claimID(kind string, n int) string { return "CLM-" + kind + "-" + strconv.Itoa(n) }

// create starts SUB_06 for a claim, also while the broker is too busy to take it.
func (s *site) create(claim string) error {
	for deadline := time.Now().Add(enough); ; {
		_, err := s.gateway.CreateProcessInstance(s.t.Context(), &pb.CreateProcessInstanceRequest{
			BpmnProcessId: "SUB_06", Version: -1, Variables: jsonOf(map[string]string{"claimId": claim}),
		}, grpc.WaitForReady(true))
		if status.Code(err) != codes.ResourceExhausted || time.Now().After(deadline) {
			return err
		}
	}
}

// explain shows what the parts said last.
func (s *site) explain() {
	s.t.Logf("the broker said last: %s", s.broker.LastLine())
	if s.worker != nil {
		s.t.Log(s.worker.Log.Without("review_waiting", "permanent_error_detected", "retry_recovered"))
	}
	s.t.Log(s.mail.Log())
	s.history.Look(func() { s.t.Logf("%d instances, ended: %v", len(s.history.instances), s.history.ends()) })
}
