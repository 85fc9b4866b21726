package access

import (
	"crypto/sha256"
	"slices"
)

// Holders returns the tokens in the order of the file.
func (t *Tokens) Holders() []Token { return slices.Clone(t.all) }

// IDOf returns what EndedSessions knows the session of a cookie's value by.
func (g *Gate) IDOf(value string) (id [sha256.Size]byte) {
	if s := g.sessionOf(value); s != nil {
		id = s.id()
	}
	return id
}
