// Package wait has tests wait for what happens elsewhere.
package wait

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Limit bounds what a test waits for. It is reached only where the test fails, on a busy machine too.
const Limit = 4 * time.Minute

// Between two looks at something: often at first, as most is seen soon.
const (
	firstPause = 2 * time.Millisecond
	longest    = 150 * time.Millisecond
)

// Until returns when holds reports true. It fails the test where that does not come within Limit, and says what was waited for and,
// by last, what there was instead.
func Until(t testing.TB, what string, holds func() bool, last ...func() string) {
	t.Helper()
	deadline := time.Now().Add(Limit)
	for pause := firstPause; !holds(); pause = min(2*pause, longest) {
		if time.Now().After(deadline) {
			t.Fatalf("not seen within %v: %s%s", Limit, what, said(last))
		}
		time.Sleep(pause)
	}
}

func said(last []func() string) (text string) {
	for _, tell := range last {
		text += fmt.Sprintf("; there was: %s", tell())
	}
	return text
}

// Context returns one that ends after Limit, or with the test.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	t.Cleanup(cancel)
	return ctx
}
