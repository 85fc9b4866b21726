package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/zeebe"
)

// firstDecision notes when the first decision is on the screen.
type firstDecision struct {
	output
	begun time.Time
	took  time.Duration
}

func (f *firstDecision) Write(b []byte) (int, error) {
	n, err := f.output.Write(b)
	if f.took == 0 && bytes.Contains(b, []byte("decided:")) {
		f.took = time.Since(f.begun)
	}
	return n, err
}

// TestRealRun is `make run` with the real worker and a real Zeebe, and a person who does what it asks for.
func TestRealRun(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: needs a real broker")
	}
	fetch(t)
	binary, temporary := filepath.Join(t.TempDir(), "retry-worker"), t.TempDir()
	if out, err := exec.Command("go", "build", "-o", binary, "retry-worker/cmd/retry-worker").CombinedOutput(); err != nil {
		t.Fatalf("build the worker: %v\n%s", err, out)
	}
	shown := &firstDecision{begun: time.Now()}
	cmd := exec.Command(os.Args[0], "-bin", binary)
	cmd.Env = append(os.Environ(), roleName+"=local", "TMPDIR="+temporary)
	cmd.Stdout, cmd.Stderr = shown, shown
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	v := &viewer{t: t, shown: shown, ended: make(chan struct{})}
	go func() {
		v.err = cmd.Wait()
		close(v.ended)
	}()
	t.Cleanup(func() { // ended long ago, unless the test failed
		_ = cmd.Process.Signal(os.Interrupt)
		<-v.ended
	})
	v.reviews()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if <-v.ended; v.err != nil {
		t.Fatalf("%v; it printed:\n%s", v.err, shown)
	}
	wanted := []string{"retry 1 of 5", "retry 1 of 3", "WAITING", "moves the broker's own clock", "What became of them:", "Nothing is left",
		"Waiting for your review: 3 of SUB_06, 1 of WHATSAPP_MESSAGE."}
	for process, samples := range map[string]string{"SUB_06": "30 claims", "WHATSAPP_MESSAGE": "7 messages", "FAILED_JOB": "5 jobs", "JOB_QUEUE": "8 jobs"} {
		wanted = append(wanted, process+" version 1 deployed", "\n"+process+": "+samples)
	}
	if strings.Contains(shown.String(), "has not ended") {
		t.Errorf("samples have not ended:\n%s", shown)
	}
	for _, want := range wanted {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, shown)
		}
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left: %v (%v)", left, err)
	}
	if shown.took == 0 || shown.took > time.Minute {
		t.Errorf("the first decision showed after %v", shown.took)
	}
	fmt.Printf("PRINT make run, Zeebe being there: the first decision shows after %.1f s\n", shown.took.Seconds())
}

// fetch has what the run needs there, so that its time is that of a second start.
func fetch(t *testing.T) {
	t.Helper()
	_, err := zeebe.ProvideJava(t.Context(), nil)
	if err == nil {
		_, err = zeebe.Fetch(t.Context(), zeebe.Versions[0], nil)
	}
	if missing, ok := errors.AsType[harness.Missing](err); ok {
		t.Skipf("NOT RUN: `make run` on a real broker: %v", missing)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// viewer reads what `make run` prints, and does what it asks for.
type viewer struct {
	t       *testing.T
	shown   *firstDecision
	ended   chan struct{}
	err     error // of the run; read after its end
	console string
}

// runTime bounds what a run shows; until it asks for the viewer some 40 s pass.
const runTime = 4 * time.Minute

// sees waits for what is printed to hold some words, and returns what it matched.
func (v *viewer) sees(words string) []string {
	v.t.Helper()
	pattern := regexp.MustCompile(words)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(runTime); ; {
		if m := pattern.FindStringSubmatch(v.shown.String()); m != nil {
			return m
		}
		select {
		case <-ticker.C:
		case <-v.ended:
			v.t.Fatalf("it ended (%v) without %q; it printed:\n%s", v.err, words, v.shown)
		}
		if time.Now().After(deadline) {
			v.t.Fatalf("no %q after %v; it printed:\n%s", words, runTime, v.shown)
		}
	}
}

// asks the API behind the console; body empty: by GET.
func (v *viewer) asks(path, body string, answer any) (status int) {
	v.t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(v.t.Context(), method, v.console+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		v.t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		v.t.Fatalf("%s %s: %s, %v", method, path, response.Status, err)
	}
	return response.StatusCode
}

type deadLetter struct {
	ID, State   string
	Subject     struct{ ID, Policy string }
	ForceNeeded bool
	Process     string
}

// reviews finds what is left, reads it, and decides: all is sent again but one, which is let go. What follows shows.
func (v *viewer) reviews() {
	v.t.Helper()
	v.console = v.sees(`Console +(http://\S+)/dead-letters: `)[1]
	page, err := http.Get(v.console + "/dead-letters")
	if err != nil || page.StatusCode != http.StatusOK {
		v.t.Fatalf("the console's page: %v, %v", page, err)
	}
	_ = page.Body.Close()
	var list struct{ Items []deadLetter }
	if v.asks("/dead-letters", "", &list); len(list.Items) != 4 {
		v.t.Fatalf("%d dead letters are open, expected 4: %+v", len(list.Items), list.Items)
	}
	discarded := false
	var recovered []deadLetter
	for _, d := range list.Items {
		path, body := "/dead-letters/"+d.ID+"/retry", `{"reason":"dados corrigidos"}`
		switch {
		case d.ForceNeeded:
			var refused struct{ Error string }
			if status := v.asks(path, body, &refused); status != http.StatusConflict || refused.Error != "max_retries_exceeded" {
				v.t.Errorf("%s at its limit: %d %s, expected 409 max_retries_exceeded", d.Subject.ID, status, refused.Error)
			}
			body = `{"reason":"dados corrigidos","forceRetry":true}`
		case !discarded:
			discarded, path, body = true, "/dead-letters/"+d.ID+"/discard", `{"reason":"não vale a pena"}`
		}
		var after deadLetter
		if status := v.asks(path, body, &after); status != http.StatusOK || d.Process != "waiting" {
			v.t.Errorf("%s, for which %s waits: %d", d.Subject.ID, d.Process, status)
		}
		if !strings.HasSuffix(path, "discard") {
			recovered = append(recovered, d)
		}
	}
	v.sees(`reviewed by local: "não vale a pena"; let go, and the process ends`)
	for _, d := range recovered {
		v.sees(`(?s)` + d.Subject.ID + ` +reviewed by local: "dados corrigidos"; the process goes on .*` + "accepted by [^\n]* after your review")
		v.becomes(d, "recovered")
	}
}

// becomes waits for a dead letter to be in a state.
func (v *viewer) becomes(d deadLetter, state string) {
	v.t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(enough); v.asks("/dead-letters/"+d.ID, "", &d) != http.StatusOK || d.State != state; <-ticker.C {
		if time.Now().After(deadline) {
			v.t.Fatalf("the dead letter of %s is %s, expected %s", d.Subject.ID, d.State, state)
		}
	}
}
