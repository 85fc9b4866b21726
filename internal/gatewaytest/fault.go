package gatewaytest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Fault is something that goes wrong with calls. Without DropAck, a fault with
// a Code, Hang, Empty or DropConnection keeps the call from the engine: it has
// no effect. Delay, SlowReply and PadTo let it through, and the next rule may
// add its own.
type Fault struct {
	Method Method          // whose calls; [AnyMethod] (the zero value) for all
	Match  func(Call) bool // which of them; nil for all. Called concurrently.

	Code    codes.Code // the status of the answer
	Message string     // of that status; a plain one if empty
	Empty   bool       // an answer with OK, at once, with nothing in it and no effect
	Hang    bool       // no answer until the caller gives up

	Delay     time.Duration // passes before the engine sees the call
	SlowReply time.Duration // passes between the effect and the answer
	PadTo     int           // bytes each job's variables are brought to; ActivateJobs only

	// DropAck lets the call take effect, then answers with Code (UNAVAILABLE
	// if OK), not at all (Hang), or by closing the connection (DropConnection).
	// Jobs of an ActivateJobs so lost stay locked until their time-out.
	DropAck bool
	// DropConnection closes the caller's connection; without a socket it is
	// UNAVAILABLE.
	DropConnection bool
	// CutStream ends an ActivateJobs answer with Code (UNAVAILABLE if OK) after
	// CutAfter jobs; the rest stay locked until their time-out.
	CutStream bool
	CutAfter  int

	Times       int     // how often it happens; 0 until it is removed
	Probability float64 // how likely it happens, (0, 1]; 0 is always
	Seed        uint64  // of the draws for Probability: same seed, same sequence
}

// check panics on a fault that cannot mean anything.
func (f Fault) check() {
	bad := func(why string) { panic(fmt.Sprintf("gatewaytest: fault %+v: %s", f, why)) }
	ends := 0
	for _, set := range []bool{f.Code != codes.OK || f.CutStream, f.Empty, f.Hang, f.DropConnection} {
		if set {
			ends++
		}
	}
	switch {
	case ends > 1 && (!f.CutStream || !f.DropConnection || ends > 2):
		bad("only one of Code, CutStream, Empty, Hang and DropConnection can end a call")
	case f.DropAck && (f.Empty || f.CutStream):
		bad("DropAck goes with Code, Hang or DropConnection only")
	case ends == 0 && !f.DropAck && f.Delay == 0 && f.SlowReply == 0 && f.PadTo == 0:
		bad("nothing goes wrong with it")
	case f.Probability < 0 || f.Probability > 1:
		bad("Probability must be between 0 and 1")
	case (f.CutStream || f.PadTo > 0) && f.Method != ActivateJobs:
		bad("CutStream and PadTo are for ActivateJobs")
	case f.Times < 0 || f.CutAfter < 0:
		bad("Times and CutAfter must not be negative")
	}
}

// Rule is a fault in force.
type Rule struct {
	fault Fault
	list  *faults
	fired atomic.Int64

	mu    sync.Mutex
	draws *rand.Rand
	left  int // firings, where the fault has Times
}

// Fired is how many calls it happened to.
func (r *Rule) Fired() int { return int(r.fired.Load()) }

// Remove ends it for calls that arrive from now on. Idempotent.
func (r *Rule) Remove() { r.list.remove(r) }

// faults is the list of rules, in the order they were set; read without a lock.
type faults struct {
	mu    sync.Mutex
	rules atomic.Pointer[[]*Rule]
}

// Inject puts a fault in force for calls that arrive from now on, after those
// set before. It panics on a fault that contradicts itself.
func (e *Engine) Inject(f Fault) *Rule {
	f.check()
	r := &Rule{fault: f, list: &e.faults, left: f.Times}
	r.draws = rand.New(rand.NewPCG(f.Seed, 0))
	e.faults.change(func(all []*Rule) []*Rule { return append(all, r) })
	return r
}

// ClearFaults removes all faults.
func (e *Engine) ClearFaults() { e.faults.change(func([]*Rule) []*Rule { return nil }) }

func (l *faults) remove(r *Rule) {
	l.change(func(all []*Rule) []*Rule {
		return slices.DeleteFunc(all, func(other *Rule) bool { return other == r })
	})
}

func (l *faults) change(edit func([]*Rule) []*Rule) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*Rule
	if old := l.rules.Load(); old != nil {
		all = slices.Clone(*old)
	}
	all = edit(all)
	l.rules.Store(&all)
}

// fires decides whether the rule happens to this call, and counts it.
func (r *Rule) fires(c Call) bool {
	f := &r.fault
	if (f.Method != AnyMethod && f.Method != c.Method) || (f.Match != nil && !f.Match(c)) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.Times > 0 && r.left == 0 {
		return false
	}
	if f.Probability > 0 && r.draws.Float64() >= f.Probability {
		return false
	}
	r.left--
	r.fired.Add(1)
	return true
}

// plan is what is to go wrong with one call.
type plan struct {
	delay, slow time.Duration
	pad         int
	ends        bool // no later rule has a say
	refused     error
	silent      bool  // no answer until the caller gives up
	dropAck     bool  // take effect first
	lost        error // instead of the acknowledgement or of the stream's end
	cut         bool
	cutAfter    int
}

// plan gathers what the rules do to a call, up to the first that ends it.
func (l *faults) plan(c Call) plan {
	var p plan
	rules := l.rules.Load()
	if rules == nil {
		return p
	}
	for _, r := range *rules {
		if !p.ends && r.fires(c) {
			p.add(&r.fault)
		}
	}
	return p
}

func (p *plan) add(f *Fault) {
	p.delay += f.Delay
	p.slow += f.SlowReply
	p.pad = max(p.pad, f.PadTo)
	switch {
	case f.CutStream:
		p.ends, p.cut, p.cutAfter, p.lost = true, true, f.CutAfter, f.status()
	case f.DropAck:
		p.ends, p.dropAck, p.silent, p.lost = true, true, f.Hang, f.status()
	case f.Hang:
		p.ends, p.silent = true, true
	case f.Empty:
		p.ends, p.refused = true, errEmpty
	case f.Code != codes.OK || f.DropConnection:
		p.ends, p.refused = true, f.status()
	}
}

// errEmpty marks a call that is answered with OK and no effect.
var errEmpty = errors.New("answered without effect")

// droppedError tells the gateway to close the caller's connection.
type droppedError struct{ error }

// GRPCStatus is what a caller sees whose connection is gone.
func (d droppedError) GRPCStatus() *status.Status { return status.Convert(d.error) }

func (f *Fault) status() error {
	if f.DropConnection {
		return droppedError{status.Error(codes.Unavailable, "the stub gateway closed the connection")}
	}
	code, message := f.Code, f.Message
	if code == codes.OK {
		code = codes.Unavailable
	}
	setIfEmpty(&message, "the stub gateway was told to answer "+code.String())
	return status.Error(code, message)
}

// begin is all that stands before the engine: who may call, how many commands
// may be under way, what was told to go wrong. An error is the call's answer.
func (e *Engine) begin(ctx context.Context, c Call) (plan, error) {
	e.calls.arrive(c.Method)
	under := e.enter(c.Method)
	if check := e.authorize.Load(); check != nil {
		if err := (*check)(ctx); err != nil {
			return plan{}, denied(err)
		}
	}
	if limit := e.limit.Load(); limit > 0 && under >= limit && c.Method != Topology {
		return plan{}, status.Error(codes.ResourceExhausted, "partition 1 takes no more requests: writer buffer is full")
	}
	p := e.faults.plan(c)
	if c.Method.isCommand() {
		p.slow += time.Duration(e.latency.Load())
	}
	if p.ends || p.delay > 0 {
		e.stir() // a test may wait for the fault to have happened
	}
	if err := pause(ctx, p.delay); err != nil {
		return p, err
	}
	if p.silent && !p.dropAck {
		<-ctx.Done()
		return p, ended(ctx)
	}
	return p, p.refused
}

// enter counts a command as under way and says how many were before it.
func (e *Engine) enter(m Method) int64 {
	if !m.isCommand() {
		return e.commands.Load()
	}
	return e.commands.Add(1) - 1
}

func denied(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Unauthenticated, err.Error())
}

// answer turns the engine's verdict into what the caller gets: late, or not.
func (e *Engine) answer(ctx context.Context, p plan, verdict error) error {
	if err := pause(ctx, p.slow); err != nil {
		return err
	}
	if !p.dropAck {
		return verdict
	}
	if p.silent {
		<-ctx.Done()
		return ended(ctx)
	}
	return p.lost
}

// end counts a call's answer and returns it.
func (e *Engine) end(c Call, err error) error {
	err = hideEmpty(err)
	if c.Method.isCommand() {
		e.commands.Add(-1)
	}
	e.calls.leave(c.Method, status.Code(err))
	e.stir()
	return err
}

func hideEmpty(err error) error {
	if errors.Is(err, errEmpty) {
		return nil
	}
	return err
}

// pause waits for d, or fails with the context's status.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}
