package faults_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"retry-worker/internal/gatewaytest"
	"retry-worker/internal/worker"
)

const (
	// refusedPolls are looked at; the last pauses between them are the longest there are.
	refusedPolls = 7
	// mostPolls in one second: the shortest pauses allow seven. A loop without back-off makes thousands.
	mostPolls = 8
	// recovery is far below what a job waits that is let down, and above the longest pause between two
	// polls by what a machine may need that has much else to do; TestRecovery is exact.
	recovery = jobTimeout / 2
)

// pollRows: every status code of ActivateJobs; OK at once and empty is the seventeenth.
func pollRows() []row {
	rows := []row{{"ActivateJobs is answered OK, empty, at once", func(t *testing.T) result {
		return playPolls(t, gatewaytest.Fault{Empty: true})
	}}}
	for _, code := range the16() {
		rows = append(rows, row{"ActivateJobs is answered " + codeName(code), func(t *testing.T) result {
			return playPolls(t, gatewaytest.Fault{Code: code})
		}})
	}
	return rows
}

func playPolls(t *testing.T, f gatewaytest.Fault) result {
	const jobs = 40
	s := newScene(t, gatewaytest.Options{})
	f.Method = gatewaytest.ActivateJobs
	rule := s.Inject(f)
	w := s.worker("w1")
	s.fired(rule, refusedPolls)
	if n := gatewaytest.MostPolls(s.Polls(""), time.Second); n > mostPolls {
		t.Errorf("%d polls within a second, want at most %d", n, mostPolls)
	}
	s.claims(jobs)
	rule.Remove()
	s.settled(jobs)
	w.until("all jobs reported", func(f figures) bool { return f.answered() == jobs })
	w.leave()
	if n := w.logs.FilterMessageSnippet("does not answer polls").Len(); f.Code != codes.OK && n != 1 {
		t.Errorf("%d log lines tell of the fault, want one", n)
	}
	if got := w.figures(); got.actions[worker.Released] > 0 || !got.ups[len(got.ups)-1] {
		t.Errorf("after the fault: %+v; want an engine that is up and no job released", got)
	}
	return s.result(0).soon(t, recovery)
}

var humps = regexp.MustCompile(`([a-z])([A-Z])`)

// codeName is the code as the platform's documents write it: RESOURCE_EXHAUSTED.
func codeName(c codes.Code) string {
	return strings.ToUpper(humps.ReplaceAllString(c.String(), "${1}_${2}"))
}
