package testkit

import (
	"sync/atomic"
	"testing"
	"time"

	"retry-worker/internal/access"
)

// Tokens stands in for the tokens file of a test.
type Tokens struct {
	t       testing.TB
	current atomic.Pointer[access.Tokens]
	secrets map[string]string
	// Teams bind the named tokens to teams at the next Publish.
	Teams map[string]access.Teams
}

// NewTokens publishes tokens that do not expire, one for each role; each role may do what the one before may, and
// more.
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
		secret, token := access.NewToken(name, role, expires)
		k.secrets[name], token.Teams = secret, k.Teams[name]
		lines += token.Line() + "\n"
	}
	tokens, err := access.Parse("tokens", []byte(lines))
	Must(k.t, err)
	k.current.Store(tokens)
}

// Load returns the tokens in force.
func (k *Tokens) Load() *access.Tokens { return k.current.Load() }

// Secret returns the secret of the token with that name.
func (k *Tokens) Secret(name string) string { return k.secrets[name] }
