package app_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
)

// TestATeamIsTold: a dead letter becomes a webhook, so does an outage, and a stop while the receiver hangs is as quick as any.
func TestATeamIsTold(t *testing.T) {
	skipIfShort(t, "waits for the notices to be looked at")
	leavesNothing(t)
	const secret = "whsec_c2VncmVkbyBkZSB1bSBob3NwaXRhbCBpbWFnaW5hcmlv"
	path := testkit.File(t, "secret", []byte(secret))
	checker, err := standardwebhooks.NewWebhook(secret)
	testkit.Must(t, err)
	bodies, hang, hanging := make(chan string, 10), make(chan struct{}), make(chan struct{}, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := checker.Verify(body, r.Header); err != nil {
			t.Error(err)
		}
		select {
		case <-hang:
			hanging <- struct{}{}
			<-r.Context().Done()
		default:
			bodies <- string(body)
		}
	}))
	defer receiver.Close()
	told := "\n  faturamento:\n    webhook: {url: '" + receiver.URL + "', secretFile: " + path + "}\n"
	file := newPoliciesFile(t, edited(t, "\n  faturamento:\n", told+"    email: [f@hospital.example]\n"))
	g := gateway.New(t, gateway.Options{})
	s := settings(t, g.Addr())
	s.PoliciesFile, s.Notify.Webhooks.Networks, s.Notify.Interval = string(file), []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, time.Second
	r := serve(t, s)
	isTold := func(words ...string) {
		t.Helper()
		select {
		case body := <-bodies:
			for _, word := range append(words, `"team":"faturamento"`) {
				if !strings.Contains(body, word) || strings.Contains(body, "CLM-") {
					t.Errorf("told %s, want %s", body, word)
				}
			}
		case <-time.After(patience):
			t.Fatal("nobody was told")
		}
	}
	g.AddJob(analyze("CLM-1-1", "DUPLICATE_CLAIM", 2))
	isTold(`"type":"dead_letters.new"`, `"count":1`)
	for i := range 6 {
		g.AddJob(analyze(fmt.Sprintf("CLM-2-%d", i), "TIMEOUT", 0))
	}
	isTold(`"type":"destination.down"`, `"destination":"tiss"`)
	if down := `retry_worker_destination_state{destination="tiss",state="down"} 1`; !r.metric(t, down) {
		t.Errorf("the metrics do not have %s", down)
	}
	wait.Until(t, "they are counted", func() bool {
		return r.metric(t, `retry_worker_notices_total{channel="webhook",result="sent",team="faturamento"} 2`)
	})
	if lines := logged.with(t, "event", "notice_problem"); len(lines) != 1 || !strings.Contains(fmt.Sprint(lines[0]), "the team faturamento is to be told by e-mail, and there is no mail server") {
		t.Errorf("told of %v", lines)
	}
	close(hang)
	g.AddJob(analyze("CLM-1-2", "DUPLICATE_CLAIM", 2))
	select {
	case <-hanging:
	case <-time.After(patience):
		t.Fatal("the second is not told")
	}
	r.stop()
	r.returned(t, 10*time.Second)
}
