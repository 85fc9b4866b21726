// Package helm holds what the Helm chart promises against Helm, the API's schemas, the worker's settings and a real run
// with the very environment that the chart renders. No cluster is needed.
package helm

import (
	"testing"

	"retry-worker/e2e/harness"
)

const chartDir = "../../deploy/helm/retry-worker"

func TestMain(m *testing.M) { harness.Main(m) }
