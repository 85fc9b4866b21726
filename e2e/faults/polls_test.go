package faults_test

import (
	"regexp"
	"strings"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/worker"
)

// firstPause lies between two polls, the first of them refused.
const firstPause = 50 * time.Millisecond

// pollRows: every status code of ActivateJobs; OK at once and empty is the seventeenth.
func pollRows() []row {
	rows := []row{{fault: "ActivateJobs is answered OK, empty, at once", play: playPolls(gateway.Fault{Empty: true})}}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		rows = append(rows, row{fault: "ActivateJobs is answered " + codeName(code), play: playPolls(gateway.Fault{Code: code})})
	}
	return rows
}

// playPolls: ten minutes of it, then none. The polls stay few, what waits is answered with the next one, and after a
// success a refusal costs a short pause again.
func playPolls(fault gateway.Fault) func(*fixture) result {
	return func(f *fixture) result {
		const jobs = 40
		fault.Method = gateway.ActivateJobs
		rule := f.Inject(fault)
		w := f.worker("w1")
		time.Sleep(10 * time.Minute)
		if n := rule.Fired(); n < 300 || n > 610 {
			f.t.Errorf("%d polls in ten minutes, want one every second or two", n)
		}
		f.claims(jobs)
		rule.Remove()
		f.settled(jobs)
		w.allReported(jobs)
		if n := w.logs.FilterMessageSnippet("does not answer polls").Len(); fault.Code != codes.OK && n != 1 {
			f.t.Errorf("%d log lines tell of the fault, want one", n)
		}
		if got := w.seen(); got.actions[worker.Released] > 0 || got.down() {
			f.t.Errorf("after the fault: %+v; want an engine that is up and no job released", got)
		}
		f.until("a poll", func(c gateway.Counts) bool { return c.Waiting == 1 })
		f.Inject(gateway.Fault{Method: gateway.ActivateJobs, Code: codes.Unavailable, Times: 1})
		f.AddJob(claim(jobs, passing)) // goes to the poll that waits; the next is refused
		synctest.Wait()
		late := f.AddJob(claim(jobs+1, passing))
		f.settled(jobs + 2)
		if j, _ := f.Job(late); j.Activations[0].Waited > firstPause {
			f.t.Errorf("after a success a refusal costs %s, want a short pause again", j.Activations[0].Waited)
		}
		w.leave()
		return f.result(0).soon(f.t, longestPause)
	}
}

var humps = regexp.MustCompile(`([a-z])([A-Z])`)

// codeName is the code as the platform's documents write it: RESOURCE_EXHAUSTED.
func codeName(c codes.Code) string {
	return strings.ToUpper(humps.ReplaceAllString(c.String(), "${1}_${2}"))
}
