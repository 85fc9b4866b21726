// Package helm holds what the Helm chart promises against Helm, the API's schemas and the worker's settings. No cluster is
// needed.
package helm

import (
	"testing"

	"retry-worker/e2e/harness"
)

const chartDir = "../../deploy/helm/retry-worker"

func TestMain(m *testing.M) { harness.Main(m) }
