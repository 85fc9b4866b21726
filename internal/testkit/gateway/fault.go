package gateway

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"retry-worker/internal/clock"
)

// Method is a call of the gateway protocol.
type Method string

// The methods that the gateway serves.
const (
	ActivateJobs          Method = "ActivateJobs"
	CompleteJob           Method = "CompleteJob"
	FailJob               Method = "FailJob"
	ThrowError            Method = "ThrowError"
	SetVariables          Method = "SetVariables"
	UpdateJobTimeout      Method = "UpdateJobTimeout"
	DeployResource        Method = "DeployResource"
	CreateProcessInstance Method = "CreateProcessInstance"
	Topology              Method = "Topology"
)

// Call is one call, as a fault meets it.
type Call struct {
	Method Method
	JobKey int64  // of the job that it is about, 0 where it is about none
	Worker string // that polled by the same connection, as far as known
}

// Answers reports whether the call is a worker's answer to a job.
func (c Call) Answers() bool {
	return c.Method == CompleteJob || c.Method == FailJob || c.Method == ThrowError
}

// Fault is something that goes wrong with calls. But for Delay, SlowReply and DropAck it keeps a call from having
// any effect. A call meets all faults that match it, up to the first that answers it.
type Fault struct {
	Method Method          // whose calls; empty: all
	Match  func(Call) bool // which of them; nil: all. Called concurrently.
	Times  int             // how often it happens; 0: until it is removed
	Every  int             // it happens to every so many calls that match; 0: to each

	Delay     time.Duration // passes before the effect
	SlowReply time.Duration // passes between the effect and the answer

	Code    codes.Code // of the answer
	Message string     // of the answer's status
	Empty   bool       // an empty answer without an error, at once
	Hang    bool       // no answer until the caller gives up
	// DropConnection closes the caller's connection.
	DropConnection bool
	// DropAck lets the call take effect, and then answers as told by Code (UNAVAILABLE if OK), Hang or
	// DropConnection. Jobs of a poll so lost stay locked until their time-out.
	DropAck bool
	// CutStream ends a poll's answer with Code (UNAVAILABLE if OK) after CutAfter jobs; the others stay locked.
	CutStream bool
	CutAfter  int
}

func (f *Fault) answers() bool {
	return f.Code != codes.OK || f.Empty || f.Hang || f.DropConnection || f.DropAck || f.CutStream
}

// err returns what the caller is told.
func (f *Fault) err() error {
	if f.Empty {
		return nil
	}
	code, message := f.Code, f.Message
	if code == codes.OK {
		code = codes.Unavailable
	}
	if message == "" {
		message = "the gateway was told to answer " + code.String()
	}
	return status.Error(code, message)
}

// Rule is a fault in force.
type Rule struct {
	Fault
	faults *faults
	met    int // calls that matched; faults.mu is held
	fired  int
}

// Fired returns how many calls the fault happened to.
func (r *Rule) Fired() int {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	return r.fired
}

// Remove ends the fault for calls that come from now on.
func (r *Rule) Remove() {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	r.faults.rules = slices.DeleteFunc(slices.Clone(r.faults.rules), func(other *Rule) bool { return other == r })
}

// faults are the rules in force, in the order they were set.
type faults struct {
	mu    sync.Mutex
	rules []*Rule
}

// Inject puts a fault in force for calls that come from now on.
func (g *Gateway) Inject(f Fault) *Rule {
	r := &Rule{Fault: f, faults: &g.faults}
	g.faults.mu.Lock()
	defer g.faults.mu.Unlock()
	g.faults.rules = append(g.faults.rules, r)
	return r
}

// happens reports whether the fault happens to a call, and counts it.
func (r *Rule) happens(c Call) bool {
	if r.Method != "" && r.Method != c.Method || r.Match != nil && !r.Match(c) {
		return false
	}
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	r.met++
	if r.Times > 0 && r.fired == r.Times || r.Every > 0 && r.met%r.Every != 0 {
		return false
	}
	r.fired++
	return true
}

// plan returns what is to happen to a call: the sum of the pauses, and the fault that answers it, or nil.
func (f *faults) plan(c Call) (delay, slow time.Duration, last *Fault) {
	f.mu.Lock()
	rules := f.rules
	f.mu.Unlock()
	for _, r := range rules {
		if !r.happens(c) {
			continue
		}
		delay, slow = delay+r.Delay, slow+r.SlowReply
		if r.answers() {
			return delay, slow, &r.Fault
		}
	}
	return delay, slow, nil
}

// call lets a call through the faults to its effect, and returns what the caller is told. A CutStream is left to the
// poll: it is returned.
func (g *Gateway) call(ctx context.Context, c Call, effect func() error) (cut *Fault, err error) {
	defer func() {
		g.change(func() { g.calls[outcome{c.Method, status.Code(err)}]++ })
	}()
	if !g.admits(ctx) {
		return nil, status.Error(codes.Unauthenticated, "the token is missing, or not valid, or no longer")
	}
	delay, slow, last := g.faults.plan(c)
	g.change(func() {}) // a fault may have happened that a test waits for
	if err := pause(ctx, delay); err != nil {
		return nil, err
	}
	if last == nil || last.DropAck || last.CutStream {
		err = effect()
		if waited := pause(ctx, slow); waited != nil {
			return nil, waited
		}
	}
	switch {
	case last == nil:
		return nil, err
	case last.CutStream:
		return last, err
	case last.Hang:
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	case last.DropConnection:
		if from := connOf(ctx); from != nil {
			g.cut(from)
		}
	}
	return nil, last.err()
}

// admits reports whether a call has a token that is taken, where one is asked for.
func (g *Gateway) admits(ctx context.Context) bool {
	g.mu.Lock()
	accepts := g.accepts
	g.mu.Unlock()
	return accepts == nil || accepts(bearer(ctx))
}

func bearer(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	return strings.TrimPrefix(strings.Join(md.Get("authorization"), ""), "Bearer ")
}

// pause waits for d, or fails with the context's status.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	clock.Machine{}.Rest(ctx, d)
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	return nil
}

// Calls returns how many calls of a method ended with one of the codes, with any if none is given.
func (g *Gateway) Calls(m Method, of ...codes.Code) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for o, count := range g.calls {
		if o.method == m && (len(of) == 0 || slices.Contains(of, o.code)) {
			n += count
		}
	}
	return n
}
