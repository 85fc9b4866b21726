// Package wait lets tests wait for what happens elsewhere.
package wait

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Limit bounds a wait. Only a failing test reaches it, even on a busy machine.
const Limit = 4 * time.Minute

// The pause between two looks: short at first, as most waits are short.
const (
	firstPause = 2 * time.Millisecond
	longest    = 150 * time.Millisecond
)

// Until returns when holds reports true. If that does not happen within Limit, it fails the test with what was
// awaited and, by last, what there was instead.
func Until(t testing.TB, what string, holds func() bool, last ...func() string) {
	t.Helper()
	if !Within(Limit, holds) {
		t.Fatalf("not seen within %v: %s%s", Limit, what, said(last))
	}
}

// Within returns when holds reports true, or that long has passed. It reports whether holds did.
func Within(d time.Duration, holds func() bool) bool {
	deadline := time.Now().Add(d)
	for pause := firstPause; !holds(); pause = min(2*pause, longest) {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pause)
	}
	return true
}

func said(last []func() string) (text string) {
	for _, tell := range last {
		text += fmt.Sprintf("; there was: %s", tell())
	}
	return text
}

// Context returns a context that ends after Limit, or with the test.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	t.Cleanup(cancel)
	return ctx
}
