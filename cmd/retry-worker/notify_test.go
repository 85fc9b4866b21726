package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"retry-worker/internal/testkit"
)

// toldTeam is a catalogue in which ti is told by those lines.
func toldTeam(t *testing.T, lines string) string {
	t.Helper()
	text := "extends: built-in\nteams:\n  ti:\n    " + strings.ReplaceAll(lines, "\n", "\n    ") + "\n"
	return testkit.File(t, "policies.yaml", []byte(text))
}

const webhookSecret = "whsec_c2VncmVkbyBkZSB1bSBob3NwaXRhbCBpbWFnaW5hcmlv\n"

func TestNotifyTest(t *testing.T) {
	var status atomic.Int32
	status.Store(204)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }))
	defer receiver.Close()
	secret := testkit.File(t, "secret", []byte(webhookSecret))
	policies := toldTeam(t, "email: [ti@hospital.example]\nwebhook: {url: '"+receiver.URL+"/x', secretFile: "+secret+"}")
	mailServer := testkit.Nowhere(t)
	testkit.Environment(t, map[string]string{
		"RETRY_WORKER_WEBHOOK_ALLOW": "127.0.0.1", "RETRY_WORKER_SMTP_URL": "smtp://" + mailServer,
		"RETRY_WORKER_MAIL_FROM": "retry-worker@hospital.example",
	})

	r := retryWorker("notify", "test", "--team", "ti", "--channel", "webhook", "--policies-file", policies)
	if want := "webhook  " + receiver.URL + "/x  true  204 No Content\n"; r.code != exitDone || !strings.HasSuffix(r.stdout, want) || r.stderr != "" {
		t.Errorf("exit %d, %q, %q, want %q", r.code, r.stdout, r.stderr, want)
	}
	t.Setenv(policiesFileVariable, policies)
	r = retryWorker("notify", "test", "--team", "ti")
	refused := "connect to the mail server " + mailServer + ": dial: connect: connection refused"
	if r.code != exitFailed || !strings.Contains(r.stdout, "\nemail    ti@hospital.example       false ") || !strings.Contains(r.stdout, refused+"\n") {
		t.Errorf("exit %d, %q, want %q", r.code, r.stdout, refused)
	}
	r.says(t, "not every recipient took the test (see above)")
	status.Store(410)
	o := retryWorker("notify", "test", "--team", "ti", "--channel", "webhook", "-o", "json")
	if want := `{"team":"ti","ok":false,"results":[{"channel":"webhook","recipient":"` + receiver.URL + `/x","ok":false,"said":"the receiver answered 410 Gone: it takes no webhooks any more; take the team's webhook out, or correct it"}]}` + "\n"; o.code != exitFailed || o.stdout != want {
		t.Errorf("exit %d, %s, want %s", o.code, o.stdout, want)
	}
}

// TestCheckTeams: who cannot be told, and a mail server that is not there, before anything of the engine.
func TestCheckTeams(t *testing.T) {
	mailServer := testkit.Nowhere(t)
	testkit.Environment(t, map[string]string{
		"ZEEBE_ADDRESS": testkit.Nowhere(t), "ZEEBE_INSECURE_CONNECTION": "true",
		policiesFileVariable: toldTeam(t, "email: [ti@hospital.example]\nwebhook: {url: 'https://a.example/', secretFile: /nowhere/s}"),
	})
	r := retryWorker("check")
	if want := "FAIL  teams                    the team ti is to be told by e-mail, and there is no mail server: set RETRY_WORKER_SMTP_URL and RETRY_WORKER_MAIL_FROM; " +
		"the team ti is to be told by webhook (secretFile \"/nowhere/s\"): the secret's file cannot be read: no such file or directory\n"; r.code != exitFailed || !strings.Contains(r.stdout, want) {
		t.Errorf("exit %d, %s, want %s", r.code, r.stdout, want)
	}
	t.Setenv(policiesFileVariable, toldTeam(t, "email: [ti@hospital.example]"))
	t.Setenv("RETRY_WORKER_SMTP_URL", "smtp://"+mailServer)
	t.Setenv("RETRY_WORKER_MAIL_FROM", "retry-worker@hospital.example")
	r = retryWorker("check")
	for _, want := range []string{"ok    teams                    told of dead letters by e-mail or webhook: 1\n", "FAIL  mail server              connect to the mail server " + mailServer + ": dial: connect: connection refused\n"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%s, want %s", r.stdout, want)
		}
	}
}
