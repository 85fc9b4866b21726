package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
)

// Whoever the log is for may read nothing of it, or be gone: deciding goes on, and the process lives.
func TestServeThoughNobodyReadsItsOutput(t *testing.T) {
	for _, gone := range []bool{false, true} {
		t.Run(map[bool]string{false: "unread", true: "gone"}[gone], func(t *testing.T) {
			g := gateway.New(t, gateway.Options{})
			read, write, err := os.Pipe()
			testkit.Must(t, err)
			defer read.Close()
			worker := exec.CommandContext(context.WithoutCancel(t.Context()), harness.Binary(t), "serve")
			worker.Stdout = write
			worker.Env = append(os.Environ(), "ZEEBE_ADDRESS="+g.Addr(), "ZEEBE_INSECURE_CONNECTION=true",
				"RETRY_WORKER_OPS_ADDR=127.0.0.1:0", "RETRY_WORKER_HTTP_ADDR=127.0.0.1:0",
				"RETRY_WORKER_DATABASE_URL=sqlite:"+filepath.Join(t.TempDir(), "journal.db"))
			testkit.Must(t, worker.Start())
			testkit.Must(t, write.Close())
			ended := make(chan error, 1)
			go func() { ended <- worker.Wait() }()
			defer func() {
				_ = worker.Process.Kill()
				<-ended
			}()
			if gone {
				testkit.Must(t, read.Close())
			}
			// A line of the log has some 500 bytes; a pipe takes 64 KiB, and the process itself once as much.
			var jobs []gateway.Job
			for n := range 1000 {
				jobs = append(jobs, analyze(`{"claimId":"CLM-1-`+strconv.Itoa(n)+`","submissionError":"TIMEOUT `+strings.Repeat("x", 300)+`"}`))
			}
			g.AddJobs(jobs...)
			wait.Until(t, "all are decided", func() bool {
				select {
				case err := <-ended:
					ended <- err
					t.Fatalf("the worker has ended: %v", err)
				default:
				}
				n := 0
				for _, job := range g.Journal() {
					if job.State == gateway.Completed {
						n++
					}
				}
				return n == len(jobs)
			})
		})
	}
}
