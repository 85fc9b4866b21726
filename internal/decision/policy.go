package decision

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/classify"
)

// Policy says how the failures of one kind of work are retried. It is a value: build it once, share
// it, never change it afterwards. The catalogue makes policies of its file.
type Policy struct {
	// Name by which tasks ask for it (header retryPolicy).
	Name string
	// Description for people.
	Description string
	// Catalogue is the version of the catalogue that it comes from; every decision carries it.
	Catalogue string
	// IDVariable and ErrorVariable are the names under which the process holds the subject's id and the error text.
	IDVariable, ErrorVariable string
	// HTTPStatusVariable holds the HTTP status of the failure; empty where the policy reads none (R13).
	HTTPStatusVariable string
	// Destination tells where claims go; nil where the policy knows of none.
	Destination *DestinationVariable
	// Context lists what people see with a claim.
	Context []ContextField
	// Openings of destinations, by their names; that of "" is all others'.
	Openings map[string]Opening
	// Stretch moves the next retry to when the destination is expected back.
	Stretch bool
	// Own names the variables in which a job brings a retry policy of its own (R15); nil where it cannot.
	Own *OwnVariables
	// IDPattern the whole id must match; its text stands in the rejection.
	IDPattern *regexp.Regexp
	// InvalidID is the code an id that does not match is rejected with.
	InvalidID RejectionCode
	// MaxRetries after the first submission, at least 0 (R12, BIL-005-V1).
	MaxRetries int64
	// Backoff between two tries.
	Backoff BackoffRule
	// TotalLimit from the first failure on: no retry is scheduled beyond it (R20). An episode of which nothing
	// was heard for that long after its retry was due is abandoned. 0 is no limit.
	TotalLimit time.Duration
	// Salt makes this policy's jitter differ from that of one with the same name elsewhere (R6).
	Salt string
	// Rules classify the error.
	Rules *classify.Classifier
	// PresumedRetries is how often an error is tried again that only words of refusal speak for, before it is given up
	// (R25).
	PresumedRetries int64
	// EmptyError says what an error without text does (R11).
	EmptyError EmptyError
	// UnknownError says what an error that no rule knows does (R1.6).
	UnknownError UnknownError
	// LimitTeam acts when the retries are used up (R21), and on errors that are given up without a rule.
	LimitTeam Team
}

// DestinationVariable names the process variable that holds a claim's destination, and the destination of a claim
// without it.
type DestinationVariable struct{ Variable, Default string }

// EmptyError is the policy setting emptyError (R11).
type EmptyError string

// The two ways to treat an error without text.
const (
	RejectEmptyError EmptyError = "reject"
	AssumeTransient  EmptyError = "assume-transient"
)

// UnknownError is the policy setting unknownError (R1.6).
type UnknownError string

// The two ways to treat an error that no rule knows. The zero value retries.
const (
	RetryUnknown  UnknownError = "retry"
	GiveUpUnknown UnknownError = "give-up"
)

// Precision of the instants that p computes with: whole seconds, or milliseconds where its delays are below a
// minute (R7).
func (p *Policy) Precision() time.Duration {
	if p.Own != nil {
		return time.Millisecond // a job may bring any delay
	}
	return p.Backoff.Precision()
}

// DefaultPolicy decides for tasks that name none (R15).
const DefaultPolicy = "tiss-submission"

// Policies are those a worker decides by, by name. Never changed once in use.
type Policies map[string]*Policy

// Find returns the policy a task names; the empty name means DefaultPolicy. A name that does not exist is
// rejected with those that do.
func (ps Policies) Find(name string) (*Policy, *Rejection) {
	if name == "" {
		name = DefaultPolicy
	}
	if p, ok := ps[name]; ok {
		return p, nil
	}
	return nil, &Rejection{UnknownPolicy, "retryPolicy", Text(name).describe(), "one of " + strings.Join(ps.Names(), ", ")}
}

// Names in alphabetical order.
func (ps Policies) Names() []string {
	return slices.Sorted(maps.Keys(ps))
}

// IDVariables lists the names under which processes hold a subject's id.
func (ps Policies) IDVariables() []string {
	return ps.list(func(p *Policy) []string { return []string{p.IDVariable} })
}

// GateVariables lists the names under which processes hold a subject's id, its destination and its context.
func (ps Policies) GateVariables() []string {
	return ps.list(func(p *Policy) []string {
		names := []string{p.IDVariable}
		if p.Destination != nil {
			names = append(names, p.Destination.Variable)
		}
		for i := range p.Context {
			names = append(names, p.Context[i].Variable)
		}
		return names
	})
}

// Variables lists the process variables that the policies read, each once, in alphabetical order.
func (ps Policies) Variables() []string { return ps.list((*Policy).variableNames) }

// list returns names of all policies, each once, in alphabetical order.
func (ps Policies) list(names func(*Policy) []string) []string {
	var all []string
	for _, p := range ps {
		all = append(all, names(p)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
