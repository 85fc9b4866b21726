package decision

import (
	"slices"
	"strings"
)

// DefaultPolicy decides for tasks that name none (R15).
const DefaultPolicy = "tiss-submission"

// Policies are those a worker decides by, by name. Never changed once in use.
type Policies map[string]*Policy

// Find is the policy a task names; the empty name means DefaultPolicy. A name that does not exist is
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
	names := make([]string, 0, len(ps))
	for name := range ps {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// IDVariables lists the names under which processes hold a subject's id.
func (ps Policies) IDVariables() []string {
	var names []string
	for _, p := range ps {
		names = append(names, p.IDVariable)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Variables lists the process variables that the policies read, each once, in alphabetical order.
func (ps Policies) Variables() []string {
	var names []string
	for _, p := range ps {
		names = append(names, p.variableNames()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
