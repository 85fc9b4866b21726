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
	// refusedPolls are looked at. Pauses of 25 to 50 ms, doubled up to 1 to 2 s, lie between them: leastTime
	// at least. A loop without back-off needs milliseconds.
	refusedPolls = 7
	leastTime    = 1500 * time.Millisecond
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
	s.wantPauses(worker.AnalyzeRetry)
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

// wantPauses fails where the polls for a type came without growing pauses from the first on.
func (s *scene) wantPauses(jobType string) {
	s.t.Helper()
	polls := s.Polls(jobType)
	if took := polls[refusedPolls-1].At.Sub(polls[0].At); took < leastTime {
		s.t.Errorf("%d refused polls within %s, want growing pauses, %s in all", refusedPolls, took, leastTime)
	}
}

var humps = regexp.MustCompile(`([a-z])([A-Z])`)

// codeName is the code as the platform's documents write it: RESOURCE_EXHAUSTED.
func codeName(c codes.Code) string {
	return strings.ToUpper(humps.ReplaceAllString(c.String(), "${1}_${2}"))
}
