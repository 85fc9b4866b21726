// Package access says who asks and what they may do: roles, tokens in a file, and what stands before every HTTP handler.
package access

import (
	"context"
	"fmt"
	"strings"
)

// Role is what somebody may do; each may what the one before it may. The zero value is nobody's, and may nothing.
type Role int8

// The roles, from the least on.
const (
	Viewer   Role = iota + 1 // reads
	Operator                 // retries and discards
	Admin                    // retries beyond the limit, and in bulk
)

var roleNames = [...]string{"nobody", "viewer", "operator", "admin"}

// String is the role's name, as the tokens file has it.
func (r Role) String() string {
	if r < 0 || int(r) >= len(roleNames) {
		return fmt.Sprintf("Role(%d)", int8(r))
	}
	return roleNames[r]
}

// ParseRole is the role of that name: viewer, operator or admin, in lower case.
func ParseRole(name string) (Role, error) {
	for role := Viewer; role <= Admin; role++ {
		if name == role.String() {
			return role, nil
		}
	}
	return 0, fmt.Errorf("%s, expected viewer, operator or admin", shown(name))
}

// MarshalText is String.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// May tells whether the role allows an action; an action that does not exist is allowed to nobody.
func (r Role) May(a Action) bool {
	need := a.needs()
	return need != 0 && r >= need && r <= Admin
}

// Action is what somebody wants to do.
type Action int8

// The actions.
const (
	Read   Action = iota + 1 // look at anything
	Review                   // retry or discard a dead letter within the rules
	Force                    // retry beyond the limit or from the beginning (forceRetry, fresh), and many at once
)

// needs is the least role for the action; 0 if there is no such action.
func (a Action) needs() Role {
	switch a {
	case Read:
		return Viewer
	case Review:
		return Operator
	case Force:
		return Admin
	default:
		return 0
	}
}

// String says the action in words that follow "may not".
func (a Action) String() string {
	switch a {
	case Read:
		return "read"
	case Review:
		return "retry or discard"
	case Force:
		return "retry beyond the limit or in bulk"
	default:
		return fmt.Sprintf("Action(%d)", int8(a))
	}
}

// Identity is who asks.
type Identity struct {
	// Name of the token, or LocalName; empty for nobody.
	Name string
	Role Role
}

// LocalName is everybody's name where there are no tokens. No token can have it.
const LocalName = "local"

// Local is everybody on this machine, where there are no tokens.
func Local() Identity { return Identity{LocalName, Admin} }

type contextKey struct{}

// From is who asks, as Gate.Middleware found out; the zero Identity, which may nothing, where nobody did.
func From(ctx context.Context) Identity { return askerIn(ctx).Identity }

// Within is ctx in which id asks: for work that no HTTP request began, and for tests.
func Within(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, contextKey{}, &asker{Identity: id})
}

func askerIn(ctx context.Context) *asker {
	if a, ok := ctx.Value(contextKey{}).(*asker); ok {
		return a
	}
	return &asker{}
}

// shown is what somebody wrote, as messages show it: one line, not too long, and never a token that stands in the wrong
// place.
func shown(s string) string {
	const most = 60
	if strings.Contains(strings.ToLower(s), tokenPrefix) {
		return "a token (not shown)"
	}
	if len(s) > most {
		return fmt.Sprintf("%q…", s[:most])
	}
	return fmt.Sprintf("%q", s)
}
