package chaos_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// TestEngineRestored: the engine is put back to what it was a while ago, and the journal is not. What people and processes
// then find is what docs/operations.md says.
func TestEngineRestored(t *testing.T) {
	t.Parallel()
	e := openEngine(t)
	begun, saved := time.Now(), filepath.Join(t.TempDir(), "data")
	p := serve(t, settings{name: "restored", gateway: e.GatewayAddress(), url: newURL["SQLite"](t)})
	const decided, open, lost, anew = "CLM-RESTORED-1", "CLM-RESTORED-2", "CLM-RESTORED-3", "CLM-RESTORED-4"
	e.dies(t, decided)
	e.dies(t, open)
	first := p.letter(decided, "open", "waiting")
	p.letter(open, "open", "waiting")
	e.Kill()
	testkit.Must(t, os.CopyFS(saved, os.DirFS(e.Data())))
	testkit.Must(t, e.clock.Restart(t.Context()))

	// What happens meanwhile is in the journal alone.
	p.decide(first.ID, "retry")
	e.submits(t, decided, "")
	p.letter(decided, "recovered", "answered")
	e.dies(t, lost)
	gone := p.letter(lost, "open", "waiting")
	e.Kill()
	testkit.Must(t, os.RemoveAll(e.Data()))
	testkit.Must(t, os.CopyFS(e.Data(), os.DirFS(saved)))
	testkit.Must(t, e.clock.Restart(t.Context()))

	// A claim that begins now may have keys that another one had: it is decided for itself.
	e.dies(t, anew)
	if now := p.letter(anew, "open", "waiting"); now.ID == gone.ID || now.RetryCount != gone.RetryCount {
		t.Errorf("%s is %+v, as if it were %s", anew, now, lost)
	}
	// One that waited then still waits, and is decided as ever.
	p.decide(p.letter(open, "open", "waiting").ID, "discard")
	p.letter(open, "discarded", "answered")
	// One whose process is gone is told so to whoever decides.
	p.decide(gone.ID, "retry")
	p.letter(lost, "open", "nobody")
	// The review that was decided is there again, and was given out for a day before the engine was saved. Then it ends without
	// another submission: by the journal the claim went through.
	testkit.Must(t, e.clock.MoveTo(t.Context(), e.clock.Now().Add(25*time.Hour)))
	wait.Until(t, "the end of what was decided", func() bool {
		return strings.Contains(p.out.Text(), `"deadLetterId":"`+first.ID+`","decision":"discard"`)
	})
	p.stop()
	report(t, "engine restored, journal ahead", "4 claims, each as the guide says, %.1f s", time.Since(begun).Seconds())
}

// dies starts a claim whose submission fails for good.
func (e *devEngine) dies(t *testing.T, claim string) {
	t.Helper()
	e.start(t, &pb.CreateProcessInstanceRequest{BpmnProcessId: "SUB_06", Version: -1, Variables: jsonOf(map[string]any{"claimId": claim})})
	e.submits(t, claim, permanent)
}

// submits plays the portal for a claim: it refuses it for a reason, or takes it.
func (e *devEngine) submits(t *testing.T, claim, refusal string) {
	t.Helper()
	wait.Until(t, "the submission of "+claim, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		given, _ := e.jobs(ctx, "submit-claim", 1, time.Second, 2*time.Second)
		if len(given) == 0 || !strings.Contains(given[0].Variables, `"`+claim+`"`) {
			return false // the engine has just come back, or it is another's, which comes back
		}
		var err error
		key := given[0].Key
		if refusal == "" {
			_, err = e.CompleteJob(ctx, &pb.CompleteJobRequest{JobKey: key})
		} else {
			_, err = e.ThrowError(ctx, &pb.ThrowErrorRequest{JobKey: key, ErrorCode: "SUBMISSION_FAILED", Variables: jsonOf(map[string]any{"submissionError": refusal})})
		}
		return err == nil
	})
}

// letter is a claim's newest dead letter.
type letter struct {
	ID, State, Process string
	RetryCount         int
	Review             struct{ Reason string }
}

// letter waits for the claim's dead letter to be so.
func (p *program) letter(claim, state, process string) (found letter) {
	p.t.Helper()
	var body string
	wait.Until(p.t, claim+" to be "+state+", "+process, func() bool {
		_, body = testkit.Get(p.t, "http://"+p.http+"/api/v1/dead-letters?state=all&q="+claim)
		var page struct{ Items []letter }
		if json.Unmarshal([]byte(body), &page) != nil || len(page.Items) == 0 {
			return false
		}
		found = page.Items[0]
		return found.State == state && found.Process == process
	}, func() string { return body })
	return found
}

// decide retries or discards, as a person would.
func (p *program) decide(id, verb string) {
	p.t.Helper()
	given := map[string]any{"reason": "corrigido"}
	if verb == "retry" {
		given["when"] = "now"
	}
	status, text, err := request(p.http, http.MethodPost, "dead-letters/"+id+"/"+verb, given)
	testkit.Must(p.t, err)
	if status != http.StatusOK {
		p.t.Fatalf("%s of %s is answered with %d %s", verb, id, status, text)
	}
}
