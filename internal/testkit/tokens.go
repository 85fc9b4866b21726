package testkit

import (
	"sync/atomic"
	"testing"
	"time"

	"retry-worker/internal/access"
)

// Tokens is a tokens file that a test publishes.
type Tokens struct {
	t       testing.TB
	current atomic.Pointer[access.Tokens]
	secrets map[string]string
	// Teams that those of these names are bound to, when they are published next.
	Teams map[string]access.Teams
}

// NewTokens publishes tokens, which do not expire, for people of whom each may what the one before may, and more.
func NewTokens(t testing.TB) *Tokens {
	tokens := &Tokens{t: t, secrets: map[string]string{}}
	tokens.Publish(map[string]access.Role{"vera": access.Viewer, "otto": access.Operator, "ada": access.Admin}, time.Time{})
	return tokens
}

// Publish puts new tokens for those people in force, and no others.
func (k *Tokens) Publish(roles map[string]access.Role, expires time.Time) {
	k.t.Helper()
	lines := ""
	for name, role := range roles {
		secret, token, err := access.NewToken(name, role, expires)
		Must(k.t, err)
		k.secrets[name], token.Teams = secret, k.Teams[name]
		lines += token.Line() + "\n"
	}
	tokens, err := access.Parse("tokens", []byte(lines))
	Must(k.t, err)
	k.current.Store(tokens)
}

// Load returns those in force.
func (k *Tokens) Load() *access.Tokens { return k.current.Load() }

// Secret returns what somebody shows, by the name of the token.
func (k *Tokens) Secret(name string) string { return k.secrets[name] }
