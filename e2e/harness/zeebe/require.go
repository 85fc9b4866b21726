package zeebe

import (
	"context"
	"testing"

	"retry-worker/e2e/harness"
)

// installCommand is what a person types who has no Zeebe in the cache and nothing to fetch it by.
const installCommand = "apt-get install -y maven openjdk-21-jre-headless"

// Require fetches versions of Zeebe, and a Java, unless they are there; see [harness.Require].
func Require(t testing.TB, versions ...string) {
	t.Helper()
	harness.SkipIfShort(t)
	ctx, cancel := context.WithTimeout(context.Background(), harness.FetchTime)
	defer cancel()
	for _, version := range versions {
		_, err := Fetch(ctx, version, nil)
		harness.Require(t, "Zeebe", err, installCommand)
	}
	_, err := ProvideJava(ctx, nil)
	harness.Require(t, "Zeebe", err, installCommand)
}
