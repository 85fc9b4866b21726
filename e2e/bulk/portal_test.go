package bulk

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/e2e/harness/zeebe"
	"retry-worker/internal/worker"
	engine "retry-worker/internal/zeebe"
)

// portal plays the insurers' TISS portals. What it says to a claim follows from the claim's id, "CLM-KIND-number", and from
// whether what is wrong with that kind was corrected: a broker that was killed may ask again.
type portal struct {
	corrected sync.Map // kinds
}

// correct what is wrong with claims of a kind.
func (p *portal) correct(kind string) { p.corrected.Store(kind, true) }

func (p *portal) isCorrected(kind string) bool {
	_, is := p.corrected.Load(kind)
	return is
}

// The kinds of claims.
const (
	// credential: refused for a wrong log-in until it is corrected; then taken, but for every stubborn one of them.
	credential = "LOGIN"
	// authorization: refused for want of one until it is there.
	authorization = "AUTORIZA"
	// patient: refused for the patient's data, once and for all.
	patient = "PACIENTE"
	// stubborn is of how many one belongs to an insurer whose log-in is still wrong.
	stubborn = 20
)

// openPortal serves the submissions of SUB_06 until the test ends.
func openPortal(t *testing.T, b *zeebe.Broker) *portal {
	t.Helper()
	client, err := engine.Dial(engine.Options{Address: b.GatewayAddress(), Plaintext: true, PlainErrors: true}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	p := &portal{}
	w := worker.New(client, worker.Config{
		Name: "portal", JobTimeout: jobTimeout, PollTimeout: 500 * time.Millisecond, MaxJobsActive: 32, Concurrency: 8,
	}, []worker.Subscription{{JobType: "submit-claim", Begin: worker.Always(p.submit, "claimId")}}, worker.NoHooks(), zap.NewNop())
	stop, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.Run(stop, context.Background()) })
	t.Cleanup(func() {
		end()
		running.Wait()
		_ = client.Close()
	})
	return p
}

// submit answers one submission.
func (p *portal) submit(_ context.Context, j *worker.Job) worker.Reply {
	var variables struct{ ClaimID string }
	if err := json.Unmarshal([]byte(j.Variables), &variables); err != nil {
		panic(err)
	}
	_, rest, _ := strings.Cut(variables.ClaimID, "-")
	kind, number, _ := strings.Cut(rest, "-")
	n, err := strconv.Atoi(number)
	if err != nil {
		panic(err)
	}
	said := ""
	switch {
	case kind == patient:
		said = fmt.Sprintf("INVALID_PATIENT_DATA: guia %d, campo dataNascimento", n)
	case kind == authorization && !p.isCorrected(kind):
		said = fmt.Sprintf("AUTHORIZATION_DENIED: guia %d sem senha de autorização", n)
	case kind == credential && (!p.isCorrected(kind) || n%stubborn == 0):
		said = fmt.Sprintf("SOAP Fault ans:LoginInvalido: acesso negado ao lote %d, protocolo %08d, em 21/11/2026 08:%02d:%02d", 7000+n, 31*n, n/60%60, n%60)
	}
	if said == "" {
		return worker.Reply{Action: worker.Completed, Variables: "{}"}
	}
	return worker.Reply{Action: worker.Thrown, Error: worker.BPMNError{
		Code: "SUBMISSION_FAILED", Message: "the portal refused", Variables: jsonOf(map[string]any{"submissionError": said}),
	}}
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
