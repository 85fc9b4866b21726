package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// asGateway makes the test binary the command itself.
const asGateway = "GATEWAY_COMMAND_UNDER_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asGateway) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// process is the command running as a process of its own.
type process struct {
	cmd  *exec.Cmd
	out  *bufio.Reader
	addr string
}

func start(tb testing.TB, args ...string) *process {
	tb.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asGateway+"=1")
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = cmd.Process.Kill() })
	p := &process{cmd: cmd, out: bufio.NewReader(pipe)}
	p.addr = strings.TrimSpace(p.line(tb))
	return p
}

func (p *process) line(tb testing.TB) string {
	tb.Helper()
	text, err := p.out.ReadString('\n')
	if err != nil {
		tb.Fatalf("read from the gateway: %v", err)
	}
	return text
}

func (p *process) summary(tb testing.TB) summary {
	tb.Helper()
	var s summary
	if err := json.Unmarshal([]byte(p.line(tb)), &s); err != nil {
		tb.Fatal(err)
	}
	return s
}

func dial(tb testing.TB, addr string) pb.GatewayClient {
	tb.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return pb.NewGatewayClient(conn)
}

// take polls once; no jobs is a nil slice.
func take(tb testing.TB, client pb.GatewayClient, jobType string, n int32) []*pb.ActivatedJob {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	stream, err := client.ActivateJobs(ctx, &pb.ActivateJobsRequest{
		Type: jobType, Worker: "bench", Timeout: 10_000, MaxJobsToActivate: n, RequestTimeout: -1,
		FetchVariable: []string{"claimId", "submissionError", "retryCount", "lastSubmissionTime"},
	})
	if err != nil {
		tb.Fatal(err)
	}
	var jobs []*pb.ActivatedJob
	for {
		message, err := stream.Recv()
		if err != nil {
			return jobs
		}
		jobs = append(jobs, message.Jobs...)
	}
}

// claimOf is what a job carries.
type claimOf struct {
	ClaimID            string    `json:"claimId"`
	SubmissionError    string    `json:"submissionError"`
	RetryCount         int       `json:"retryCount"`
	LastSubmissionTime time.Time `json:"lastSubmissionTime"`
}

func TestSummaryOnceAllJobsAreAnswered(t *testing.T) {
	p := start(t, "-endless", "100", "-types", "analyze-retry,retry-submission-backoff")
	client := dial(t, p.addr)
	jobs := append(take(t, client, "analyze-retry", 70), take(t, client, "retry-submission-backoff", 70)...)
	if len(jobs) != 100 {
		t.Fatalf("two types handed out %d jobs of -endless 100", len(jobs))
	}
	for _, j := range jobs {
		answer(t, client, j)
	}
	s := p.summary(t)
	if want := (answered{Completed: 75, Thrown: 23, Failed: 2}); s.Answered != want || s.HandedOut != 100 {
		t.Errorf("summary says %+v of %d handed out, want %+v of 100", s.Answered, s.HandedOut, want)
	}
	if s.MaxHeld != 100 || s.CPUUser+s.CPUSystem <= 0 {
		t.Errorf("summary says %d held at most and %v+%v s of CPU", s.MaxHeld, s.CPUUser, s.CPUSystem)
	}
	if s.FirstAnswer == nil || s.LastAnswer == nil || s.LastAnswer.Before(*s.FirstAnswer) || s.FirstAnswer.Before(*s.FirstHandedOut) {
		t.Errorf("times out of order: %v, %v, %v", s.FirstHandedOut, s.FirstAnswer, s.LastAnswer)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the gateway ended with %v, want 0", err)
	}
}

// answer decides in the crudest way: by what the mix wrote into the claim.
func answer(t *testing.T, client pb.GatewayClient, j *pb.ActivatedJob) {
	t.Helper()
	var c claimOf
	if err := json.Unmarshal([]byte(j.Variables), &c); err != nil {
		t.Fatalf("variables %s: %v", j.Variables, err)
	}
	if age := time.Since(c.LastSubmissionTime); age < 0 || age > 2*time.Hour {
		t.Errorf("claim %s was last submitted %v ago", c.ClaimID, age)
	}
	var err error
	switch {
	case strings.HasSuffix(c.ClaimID, "X") || c.RetryCount < 0 || strings.TrimSpace(c.SubmissionError) == "":
		_, err = client.FailJob(t.Context(), &pb.FailJobRequest{JobKey: j.Key})
	case c.RetryCount >= 5 || strings.Contains(c.SubmissionError, "INVALID") || strings.Contains(c.SubmissionError, "EXPIRED") ||
		strings.Contains(c.SubmissionError, "DENIED") || strings.Contains(c.SubmissionError, "DUPLICATE"):
		_, err = client.ThrowError(t.Context(), &pb.ThrowErrorRequest{JobKey: j.Key, ErrorCode: "PERMANENT_ERROR"})
	default:
		_, err = client.CompleteJob(t.Context(), &pb.CompleteJobRequest{JobKey: j.Key})
	}
	if err != nil {
		t.Error(err)
	}
}

func TestSummaryAtSIGTERM(t *testing.T) {
	p := start(t)
	jobs := take(t, dial(t, p.addr), "analyze-retry", 5)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s := p.summary(t)
	if s.HandedOut != len(jobs) || len(jobs) != 5 || s.Answered != (answered{}) || s.FirstAnswer != nil {
		t.Errorf("summary %+v after %d jobs handed out and none answered", s, len(jobs))
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the gateway ended with %v, want 0", err)
	}
}

func TestStayServesOn(t *testing.T) {
	p := start(t, "-endless", "1", "-stay")
	client := dial(t, p.addr)
	for _, j := range take(t, client, "analyze-retry", 1) {
		answer(t, client, j)
	}
	p.summary(t)
	if _, err := client.Topology(t.Context(), &pb.TopologyRequest{}); err != nil {
		t.Errorf("after the summary: %v", err)
	}
}

func TestWrongUse(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"mix that is no mix": {[]string{"-variables-mix", "transient=lots"}, "transient=lots"},
		"mix of 90 per cent": {[]string{"-variables-mix", "transient=90"}, "expected 100"},
		"negative endless":   {[]string{"-endless", "-1"}, "-endless"},
		"an argument":        {[]string{"now"}, "now"},
		"unknown flag":       {[]string{"-fast"}, "-fast"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, problems bytes.Buffer
			if code := run(t.Context(), tt.args, &out, &problems); code != 2 {
				t.Errorf("exit %d, want 2", code)
			}
			if text := problems.String(); !strings.Contains(text, tt.want) || strings.Count(text, "\n") != 1 {
				t.Errorf("found %q, want one line with %q", text, tt.want)
			}
		})
	}
}

func TestTakenAddress(t *testing.T) {
	p := start(t)
	var out, problems bytes.Buffer
	if code := run(t.Context(), []string{"-addr", p.addr}, &out, &problems); code != 1 || !strings.Contains(problems.String(), p.addr) {
		t.Errorf("exit %d with %q, want 1 and the address", code, problems.String())
	}
}

// BenchmarkServer measures the gateway's own CPU a job, in a process of its own
// on one core (GOMAXPROCS 1); the driver's share is outside.
func BenchmarkServer(b *testing.B) {
	b.Setenv("GOMAXPROCS", "1")
	args := []string{"-stay", "-endless", strconv.Itoa(b.N)}
	if file := os.Getenv("GATEWAY_CPUPROFILE"); file != "" {
		args = append(args, "-cpuprofile", file)
	}
	p := start(b, args...)
	client := dial(b, p.addr)
	var pollers sync.WaitGroup
	b.ResetTimer()
	for range 2 {
		pollers.Go(func() {
			for jobs := take(b, client, "analyze-retry", 50); len(jobs) > 0; jobs = take(b, client, "analyze-retry", 50) {
				completeAll(b, client, jobs)
			}
		})
	}
	pollers.Wait()
	b.StopTimer()
	s := p.summary(b)
	cpu := (s.CPUUser + s.CPUSystem) / float64(b.N)
	b.ReportMetric(cpu*1e6, "server-µs/job")
	b.ReportMetric(1/cpu, "jobs/core-s")
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Wait()
}

func completeAll(tb testing.TB, client pb.GatewayClient, jobs []*pb.ActivatedJob) {
	var all sync.WaitGroup
	for _, j := range jobs {
		all.Go(func() {
			if _, err := client.CompleteJob(context.Background(), &pb.CompleteJobRequest{
				JobKey: j.Key, Variables: `{"shouldRetry":true,"retryCount":2,"backoffMinutes":12,"retryReason":"Transient error, retry 2 of 5"}`,
			}); err != nil {
				tb.Error(err)
			}
		})
	}
	all.Wait()
}
