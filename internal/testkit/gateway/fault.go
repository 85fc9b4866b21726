package gateway

import (
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Method is a call of the gateway's protocol.
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

// Call is a call as a fault sees it.
type Call struct {
	Method Method
	JobKey int64  // of its job; 0 if it has none
	Worker string // that polls

	token string // bearer token
}

// Answers reports whether the call is a worker's answer to a job.
func (c Call) Answers() bool {
	return c.Method == CompleteJob || c.Method == FailJob || c.Method == ThrowError
}

// Fault is something that goes wrong with calls. Except for Delay and DropAck, it keeps a call from having any
// effect. A call meets all faults that match it, up to the first that answers it.
type Fault struct {
	Method Method          // its calls; empty: all
	Match  func(Call) bool // which of them; nil: all. Called concurrently.
	Times  int             // how often; 0: until it is removed

	Delay time.Duration // before the effect

	Code    codes.Code // of the answer
	Message string     // of the answer's status
	Hang    bool       // no answer before the caller gives up
	// DropAck lets the call take effect, and then answers with Code (UNAVAILABLE if OK) or hangs. Jobs of such a poll
	// stay locked until their time-out.
	DropAck bool
}

func (f *Fault) answers() bool {
	return f.Code != codes.OK || f.Hang || f.DropAck
}

// err returns the fault's answer.
func (f *Fault) err() error {
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
	gateway *Gateway
	fired   int // calls that met it
}

// Inject puts a fault in force for later calls.
func (g *Gateway) Inject(f Fault) *Rule {
	r := &Rule{Fault: f, gateway: g}
	g.change(func() { g.rules = append(slices.Clone(g.rules), r) })
	return r
}

// RequireToken makes every call need a bearer token that accepts takes; others get UNAUTHENTICATED.
func (g *Gateway) RequireToken(accepts func(token string) bool) {
	g.Inject(Fault{
		Code: codes.Unauthenticated, Message: "the token is missing, or not valid, or no longer",
		Match: func(c Call) bool { return !accepts(c.token) },
	})
}

// Fired returns how many calls met the fault.
func (r *Rule) Fired() int {
	r.gateway.mu.Lock()
	defer r.gateway.mu.Unlock()
	return r.fired
}

// Remove ends the fault for later calls.
func (r *Rule) Remove() {
	g := r.gateway
	g.change(func() {
		g.rules = slices.DeleteFunc(slices.Clone(g.rules), func(other *Rule) bool { return other == r })
	})
}

// happens reports whether a call meets the fault, and counts it.
func (r *Rule) happens(c Call) (happens bool) {
	if r.Method != "" && r.Method != c.Method || r.Match != nil && !r.Match(c) {
		return false
	}
	r.gateway.change(func() {
		if happens = r.Times == 0 || r.fired < r.Times; happens {
			r.fired++
		}
	})
	return happens
}

// plan returns the sum of a call's delays, and the fault that answers it, or nil.
func (g *Gateway) plan(c Call) (delay time.Duration, last *Fault) {
	g.mu.Lock()
	rules := g.rules
	g.mu.Unlock()
	for _, r := range rules {
		if !r.happens(c) {
			continue
		}
		if delay += r.Delay; r.answers() {
			return delay, &r.Fault
		}
	}
	return delay, nil
}
