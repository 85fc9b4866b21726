package helm

import (
	"testing"

	"go.yaml.in/yaml/v3"

	"retry-worker/internal/testkit"
)

const digest = "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00"

// soundCases are those of testdata/cases.yaml.
func soundCases(t *testing.T) (all []helmCase) {
	t.Helper()
	testkit.Must(t, yaml.Unmarshal([]byte(testkit.Read(t, "testdata/cases.yaml")), &all))
	return all
}

func TestChart(t *testing.T) {
	for _, c := range soundCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			r := render(t, c)
			if r.Error != "" {
				t.Fatal(r.Error)
			}
			checkSchemas(t, r)
			checkWiring(t, r)
			checkSettings(t, r)
		})
	}
}
