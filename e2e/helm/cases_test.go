package helm

import (
	"slices"
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

// soundCase with that name; one without values where there is none.
func soundCase(t *testing.T, name string) helmCase {
	t.Helper()
	all := soundCases(t)
	if i := slices.IndexFunc(all, func(c helmCase) bool { return c.Name == name }); i >= 0 {
		return all[i]
	}
	return helmCase{Name: name}
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
