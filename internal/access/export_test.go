package access

import "slices"

// Holders returns the tokens in the order of the file.
func (t *Tokens) Holders() []Token { return slices.Clone(t.all) }
