// Package seeded checks properties with rapid from a fixed seed, so that a run can be repeated.
package seeded

import (
	"cmp"
	"flag"
	"os"

	"pgregory.net/rapid"
)

func init() {
	// `make proof` sets another seed each time. A failure prints it; -rapid.seed repeats it.
	if err := flag.Set("rapid.seed", cmp.Or(os.Getenv("PROOF_SEED"), "1")); err != nil {
		panic(err) // rapid has the flag
	}
}

// Check is [rapid.Check].
func Check(t rapid.TB, holds func(*rapid.T)) {
	t.Helper()
	rapid.Check(t, holds)
}
