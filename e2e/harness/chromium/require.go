package chromium

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"retry-worker/e2e/harness"
)

// Require returns what Provide does, which it asks once a test process; see [harness.Require].
func Require(t testing.TB) Install {
	t.Helper()
	harness.SkipIfShort(t)
	i, err := provided()
	harness.Require(t, "Chromium", err, InstallCommand)
	return i
}

var provided = sync.OnceValues(func() (Install, error) {
	ctx, cancel := context.WithTimeout(context.Background(), harness.FetchTime)
	defer cancel()
	return Provide(ctx, func(s string) { fmt.Println(s) })
})
