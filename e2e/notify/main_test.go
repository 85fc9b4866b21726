// Package notify tells a team of its dead letters end to end: the worker's own process and a real mail server.
package notify

import (
	"testing"

	"retry-worker/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
