package faults_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"retry-worker/internal/gatewaytest"
)

// row is one fault, played; it returns what became of the jobs.
type row struct {
	fault string
	play  func(t *testing.T) result
}

// result is a row's part of the table.
type result struct {
	jobs, once, locked int
	wait               time.Duration
	remark             string
}

// TestMatrix plays every fault and prints the table of issue 4.
func TestMatrix(t *testing.T) {
	rows := slices.Concat(pollRows(), answerRows(), lostRows(), loadRows(), networkRows(), sizeRows(), tokenRows(),
		tenantRows(), panicRows(), stopRows(), freezeRows())
	results := make([]result, len(rows))
	t.Run("fault", func(t *testing.T) {
		for i, r := range rows {
			t.Run(r.fault, func(t *testing.T) {
				t.Parallel()
				results[i] = r.play(t)
			})
		}
	})
	printTable(rows, results)
}

// printTable writes to standard output; scripts/test shows the lines that begin with PRINT.
func printTable(rows []row, results []result) {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "fault\tjobs\tanswered once\tlocked\tlongest wait\t")
	for i, r := range rows {
		if got := results[i]; got.jobs > 0 { // others were not selected, or failed half-way
			fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%s\t%s\n", r.fault, got.jobs, got.once, got.locked, got.wait.Round(10*time.Millisecond), got.remark)
		}
	}
	_ = table.Flush()
	for line := range strings.Lines(text.String()) {
		fmt.Fprint(os.Stdout, "PRINT "+strings.TrimRight(line, " \n")+"\n")
	}
}

// result holds the run against what is true of every fault: each job settled by one answer and no worker
// repeating itself, nothing left behind by the workers, which must all have gone; and no time-outs but
// those the fault itself explains: of answers that never reached the worker, of a worker stopped dead.
func (s *scene) result(timeouts int) result {
	s.t.Helper()
	return s.judged(s.Report(), timeouts)
}

func (s *scene) judged(r gatewaytest.Report, timeouts int) result {
	s.t.Helper()
	if r.AnsweredMore > 0 || r.Unanswered > 0 {
		s.t.Errorf("%v; want each answered once", r)
	}
	if r.Locked > 0 {
		s.t.Errorf("%d jobs are left locked, %d of them by the engine alone; want none", r.Locked, r.EngineLocked)
	}
	if r.TimedOut > timeouts {
		s.t.Errorf("%d jobs waited for their time-out, want at most %d", r.TimedOut, timeouts)
	}
	return s.counted(r)
}

func (s *scene) counted(r gatewaytest.Report) result {
	return result{jobs: len(r.Jobs), once: r.AnsweredOnce, locked: r.Locked, wait: r.WaitAnswered}
}

// soon fails where the longest wait is beyond bound.
func (r result) soon(t *testing.T, bound time.Duration) result {
	t.Helper()
	if r.wait > bound {
		t.Errorf("a job waited %s, want at most %s", r.wait, bound)
	}
	return r
}
