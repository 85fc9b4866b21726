package gatewaytest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retry-worker/internal/gatewaytest"
)

// errorCodes are all of gRPC but OK.
func errorCodes() []codes.Code {
	var all []codes.Code
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		all = append(all, c)
	}
	return all
}

func TestEveryStatusCodeIsAnsweredAndRecoveredFrom(t *testing.T) {
	g, c := start(t, gatewaytest.Options{})
	key := g.AddJob(work(1)[0])
	for _, code := range errorCodes() {
		rule := g.Inject(gatewaytest.Fault{Code: code, Message: "because of the test"})
		_, err := c.activate(deadline(t), poll(1))
		wantCode(t, "poll", err, code)
		if got := status.Convert(err).Message(); got != "because of the test" {
			t.Errorf("%v came with %q", code, got)
		}
		wantCode(t, "complete", c.complete(key, ""), code)
		if rule.Fired() != 2 || g.Calls(gatewaytest.ActivateJobs, code) != 1 {
			t.Errorf("%v: fired %d times, %d polls counted", code, rule.Fired(), g.Calls(gatewaytest.ActivateJobs, code))
		}
		rule.Remove()
		rule.Remove()
	}
	wantCode(t, "complete, no fault left", c.complete(c.take(1)[0].Key, ""), codes.OK)
	if n := len(record(t, g.Engine, key).Answers); n != 17 {
		t.Errorf("%d answers in the journal, want the 16 refused and the accepted one", n)
	}
}

func TestEmptyAnswerHasNoEffect(t *testing.T) {
	g, c := start(t, gatewaytest.Options{})
	key := g.AddJob(work(1)[0])
	g.Inject(gatewaytest.Fault{Empty: true})
	request := poll(1)
	request.RequestTimeout = 60_000
	begin := time.Now()
	jobs, err := c.activate(deadline(t), request)
	if err != nil || len(jobs) != 0 || time.Since(begin) > 10*time.Second {
		t.Errorf("%d jobs, %v after %v; want none at once", len(jobs), err, time.Since(begin))
	}
	wantCode(t, "complete", c.complete(key, ""), codes.OK)
	r := record(t, g.Engine, key)
	if r.State != gatewaytest.Activatable || r.Answers[0].Accepted() || r.Answers[0].Acked {
		t.Errorf("an answer without effect left the job %v, noted as %+v", r.State, r.Answers[0])
	}
}

func TestHangingCall(t *testing.T) {
	g, c := start(t, gatewaytest.Options{})
	key := g.AddJob(work(1)[0])
	c.take(1)
	rule := g.Inject(gatewaytest.Fault{Method: gatewaytest.CompleteJob, Hang: true})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := c.CompleteJob(ctx, &pb.CompleteJobRequest{JobKey: key})
		ended <- err
	}()
	if err := g.WaitFor(deadline(t), func(gatewaytest.View) bool { return rule.Fired() == 1 }); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		t.Fatalf("answered with %v", err)
	default:
	}
	cancel()
	wantCode(t, "given up", <-ended, codes.Canceled)
	err := g.WaitFor(deadline(t), func(v gatewaytest.View) bool { return v.Calls(gatewaytest.CompleteJob, codes.Canceled) == 1 })
	if err != nil || record(t, g.Engine, key).State != gatewaytest.Activated {
		t.Errorf("%v; the job is %v, want it untouched", err, record(t, g.Engine, key).State)
	}
}

func TestDroppedAcknowledgement(t *testing.T) {
	for name, tt := range map[string]struct {
		fault gatewaytest.Fault
		want  codes.Code
	}{
		"answered UNAVAILABLE": {gatewaytest.Fault{}, codes.Unavailable},
		"answered INTERNAL":    {gatewaytest.Fault{Code: codes.Internal}, codes.Internal},
		"connection closed":    {gatewaytest.Fault{DropConnection: true}, codes.Unavailable},
		"silence":              {gatewaytest.Fault{Hang: true}, codes.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			g, c := start(t, gatewaytest.Options{})
			key := g.AddJob(work(1)[0])
			c.take(1)
			tt.fault.Method, tt.fault.DropAck, tt.fault.Times = gatewaytest.CompleteJob, true, 1
			g.Inject(tt.fault)
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			_, err := c.CompleteJob(ctx, &pb.CompleteJobRequest{JobKey: key})
			wantCode(t, "complete", err, tt.want)
			_, err = c.CompleteJob(deadline(t), &pb.CompleteJobRequest{JobKey: key}, grpc.WaitForReady(true))
			wantCode(t, "once more", err, codes.NotFound)
			r := record(t, g.Engine, key)
			if r.State != gatewaytest.Completed || r.Answers[0].Acked || !r.Answers[0].Accepted() {
				t.Errorf("%v after %+v", r.State, r.Answers)
			}
			if report := g.Report(); report.AnsweredOnce != 1 {
				t.Errorf("asking again after a lost acknowledgement is no second answer: %v", report)
			}
		})
	}
}

func TestDroppedConnectionWithoutEffect(t *testing.T) {
	g, c := start(t, gatewaytest.Options{})
	key := g.AddJob(work(1)[0])
	c.take(1)
	g.Inject(gatewaytest.Fault{Method: gatewaytest.CompleteJob, DropConnection: true, Times: 1})
	wantCode(t, "complete", c.complete(key, ""), codes.Unavailable)
	if _, accepted := g.Connections(); accepted != 1 || record(t, g.Engine, key).State != gatewaytest.Activated {
		t.Errorf("%d connections, job %v", accepted, record(t, g.Engine, key).State)
	}
	_, err := c.CompleteJob(deadline(t), &pb.CompleteJobRequest{JobKey: key}, grpc.WaitForReady(true))
	wantCode(t, "on a new connection", err, codes.OK)
}

func TestActivationWhoseAnswerIsLostLocksItsJobs(t *testing.T) {
	g, c := start(t, gatewaytest.Options{})
	g.AddJobs(work(3)...)
	g.Inject(gatewaytest.Fault{Method: gatewaytest.ActivateJobs, DropAck: true, Times: 1})
	_, err := c.activate(deadline(t), poll(3))
	wantCode(t, "poll", err, codes.Unavailable)
	if report := g.Report(); report.Locked != 3 || report.EngineLocked != 3 || report.LongestLock < 50*time.Second {
		t.Errorf("%v; want 3 locked by the engine for a minute", report)
	}
}

func TestStreamCutAfterSomeJobs(t *testing.T) {
	for name, tt := range map[string]struct {
		fault     gatewaytest.Fault
		delivered int
		code      codes.Code
	}{
		"after 2":           {gatewaytest.Fault{CutAfter: 2}, 2, codes.Unavailable},
		"after 0, INTERNAL": {gatewaytest.Fault{Code: codes.Internal}, 0, codes.Internal},
		"after all":         {gatewaytest.Fault{CutAfter: 9}, 5, codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			g, c := start(t, gatewaytest.Options{JobsPerMessage: 1})
			g.AddJobs(work(5)...)
			tt.fault.Method, tt.fault.CutStream, tt.fault.Times = gatewaytest.ActivateJobs, true, 1
			g.Inject(tt.fault)
			jobs, err := c.activate(deadline(t), poll(5))
			wantCode(t, "poll", err, tt.code)
			if len(jobs) != tt.delivered {
				t.Errorf("%d jobs came, want %d", len(jobs), tt.delivered)
			}
			if report := g.Report(); report.Locked != 5 || report.EngineLocked != 5-tt.delivered {
				t.Errorf("%v; want 5 locked, %d by the engine", report, 5-tt.delivered)
			}
		})
	}
}

func TestOversizedJobs(t *testing.T) {
	for _, size := range []int{2 << 20, 17 << 20} {
		t.Run(fmt.Sprintf("%d MB", size>>20), func(t *testing.T) {
			g, c := start(t, gatewaytest.Options{})
			g.AddJob(work(1)[0])
			g.Inject(gatewaytest.Fault{Method: gatewaytest.ActivateJobs, PadTo: size, Times: 1})
			const receive = 16 << 20
			stream, err := c.ActivateJobs(deadline(t), poll(1), grpc.MaxCallRecvMsgSize(receive))
			if err != nil {
				t.Fatal(err)
			}
			m, err := stream.Recv()
			if size > receive {
				wantCode(t, "beyond the receive limit", err, codes.ResourceExhausted)
				return
			}
			if err != nil || len(m.Jobs[0].Variables) != size || !strings.HasPrefix(m.Jobs[0].Variables, `{"claimId"`) {
				t.Errorf("%d bytes came with %v, want %d", len(m.GetJobs()[0].GetVariables()), err, size)
			}
		})
	}
}

func TestSlowReplyPastTheDeadline(t *testing.T) {
	g, c := start(t, gatewaytest.Options{})
	keys := g.AddJobs(work(2)...)
	g.Inject(gatewaytest.Fault{SlowReply: time.Minute})
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	_, err := c.activate(short(), poll(1))
	wantCode(t, "poll", err, codes.DeadlineExceeded)
	_, err = c.CompleteJob(short(), &pb.CompleteJobRequest{JobKey: keys[1]})
	wantCode(t, "complete", err, codes.DeadlineExceeded)
	err = g.WaitFor(deadline(t), func(v gatewaytest.View) bool {
		return v.Undelivered == 1 && v.Calls(gatewaytest.CompleteJob) == 1
	})
	if err != nil {
		t.Fatal(err)
	}
	wantState(t, g.Engine, keys, gatewaytest.Activated, gatewaytest.Completed)
	if r := record(t, g.Engine, keys[1]); r.Answers[0].Acked || !r.Answers[0].Accepted() {
		t.Errorf("completion noted as %+v, want accepted and not acknowledged", r.Answers[0])
	}
}

func TestDelayBeforeTheEngineHasNoEffectOnceTheCallerLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, gatewaytest.EngineOptions{})
		key := e.AddJob(work(1)[0])
		e.Inject(gatewaytest.Fault{Delay: 3 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantCode(t, "given up", e.Complete(ctx, completion("w1", key)), codes.DeadlineExceeded)
		begin := time.Now()
		wantCode(t, "patient", e.Complete(t.Context(), completion("w1", key)), codes.OK)
		if d := time.Since(begin); d != 3*time.Second {
			t.Errorf("took %v, want 3s", d)
		}
	})
}

func TestTimesAndProbability(t *testing.T) {
	e := newEngine(t, gatewaytest.EngineOptions{})
	codesOf := func(f gatewaytest.Fault, calls int) (all []codes.Code) {
		rule := e.Inject(f)
		defer rule.Remove()
		for range calls {
			_, err := e.Version(t.Context(), "")
			all = append(all, status.Code(err))
		}
		return all
	}
	twice := codesOf(gatewaytest.Fault{Code: codes.Aborted, Times: 2}, 4)
	if fmt.Sprint(twice) != "[Aborted Aborted OK OK]" {
		t.Errorf("Times 2 gave %v", twice)
	}
	often := gatewaytest.Fault{Code: codes.Aborted, Probability: 0.05, Seed: 7}
	first, second := codesOf(often, 10_000), codesOf(often, 10_000)
	if fmt.Sprint(first) != fmt.Sprint(second) {
		t.Error("the same seed gave two sequences")
	}
	if n := strings.Count(fmt.Sprint(first), "Aborted"); n < 400 || n > 600 {
		t.Errorf("5%% of 10,000 fired %d times", n)
	}
}

func TestRulesAddUpUntilOneEndsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, gatewaytest.EngineOptions{})
		key := e.AddJob(work(1)[0])
		e.Inject(gatewaytest.Fault{Delay: time.Second})
		e.Inject(gatewaytest.Fault{Method: gatewaytest.CompleteJob, Delay: time.Second, Code: codes.Aborted, Match: func(c gatewaytest.Call) bool {
			return c.JobKey == key
		}})
		last := e.Inject(gatewaytest.Fault{Code: codes.DataLoss})
		begin := time.Now()
		wantCode(t, "this job", e.Complete(t.Context(), completion("w1", key)), codes.Aborted)
		if time.Since(begin) != 2*time.Second || last.Fired() != 0 {
			t.Errorf("after %v, the last rule fired %d times", time.Since(begin), last.Fired())
		}
		wantCode(t, "another job", e.Complete(t.Context(), completion("w1", key+1)), codes.DataLoss)
		e.ClearFaults()
		wantCode(t, "cleared", e.Complete(t.Context(), completion("w1", key)), codes.OK)
	})
}

func TestAuthorizeStandsBeforeEverything(t *testing.T) {
	e := newEngine(t, gatewaytest.EngineOptions{})
	rule := e.Inject(gatewaytest.Fault{Code: codes.Aborted})
	for want, err := range map[codes.Code]error{
		codes.Unauthenticated:  errors.New("no token"),
		codes.PermissionDenied: status.Error(codes.PermissionDenied, "not this one"),
	} {
		e.SetAuthorize(func(context.Context) error { return err })
		_, got := e.Version(t.Context(), "")
		wantCode(t, "denied", got, want)
	}
	e.SetAuthorize(nil)
	_, err := e.Version(t.Context(), "")
	if wantCode(t, "allowed", err, codes.Aborted); rule.Fired() != 1 {
		t.Errorf("the fault fired %d times, want once: denied calls do not reach it", rule.Fired())
	}
}

func TestWriterBufferIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, gatewaytest.EngineOptions{MaxInFlight: 200, CommandLatency: time.Second})
		keys := e.AddJobs(work(300)...)
		results := make(chan error, len(keys))
		for _, key := range keys {
			go func() { results <- e.Complete(t.Context(), completion("w1", key)) }()
		}
		synctest.Wait()
		_, err := e.Activate(t.Context(), ask("w1", 1, -1))
		wantCode(t, "a poll meanwhile", err, codes.ResourceExhausted)
		full := 0
		for range keys {
			if err := <-results; status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "writer buffer is full") {
				full++
			} else if err != nil {
				t.Error(err)
			}
		}
		if done := e.Counts().In(gatewaytest.Completed); full != 100 || done != 200 {
			t.Errorf("%d refused, %d completed; want 100 and 200", full, done)
		}
		for _, key := range keys { // one after the other, under the same limit
			_ = e.Complete(t.Context(), completion("w1", key)) // NOT_FOUND for those that were not refused
		}
		if report := e.Report(); report.AnsweredOnce != 300 {
			t.Errorf("%v; want all 300 answered once", report)
		}
	})
}

func TestDroppedConnectionWithoutASocket(t *testing.T) {
	e := newEngine(t, gatewaytest.EngineOptions{})
	e.Inject(gatewaytest.Fault{DropConnection: true})
	_, err := e.Version(t.Context(), "")
	wantCode(t, "engine alone", err, codes.Unavailable)
	if e.Calls(gatewaytest.Topology, codes.Unavailable) != 1 {
		t.Error("not counted as UNAVAILABLE")
	}
}
