package catalogue

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"retry-worker/internal/decision"
	"retry-worker/internal/testkit/golden"
)

// overlay reads a file that extends the built-in catalogue, and holds it against what `policies show --effective` prints
// of it: that is a whole file, which decides alike.
func overlay(t *testing.T, lines string) *Catalogue {
	t.Helper()
	c, err := Parse("policies.yaml", []byte("extends: built-in\n"+lines))
	if err != nil {
		t.Fatalf("%s\n%v", lines, err)
	}
	whole, err := Parse("whole.yaml", c.Effective())
	if err != nil {
		t.Fatalf("what it comes to is refused: %v", err)
	}
	if whole.Version != c.Version || !reflect.DeepEqual(whole.Teams, c.Teams) || changes(c, whole) != "" {
		t.Errorf("%s\ncomes to something else than a file of the whole:\n%s", lines, changes(c, whole))
	}
	return c
}

// changes returns the values of the whole of before that after does not have, and the other way round, a line each.
func changes(before, after *Catalogue) string {
	var all strings.Builder
	only := func(sign string, a, b []string) {
		for _, line := range a {
			if i := slices.Index(b, line); i >= 0 {
				b = slices.Delete(slices.Clone(b), i, i+1)
				continue
			}
			all.WriteString(sign + line + "\n")
		}
	}
	a, b := lines(before), lines(after)
	only("- ", a, b)
	only("+ ", b, a)
	return all.String()
}

// lines returns each value of the whole catalogue behind its path, and each item of a list.
func lines(c *Catalogue) (all []string) {
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(strings.TrimPrefix(path+"."+key, "."), v[key])
			}
		case []any:
			for _, item := range v {
				all = append(all, fmt.Sprint(path, "[]: ", item))
			}
		default:
			all = append(all, fmt.Sprint(path, ": ", v))
		}
	}
	var document any
	if err := yaml.Unmarshal(c.Effective(), &document); err != nil {
		panic(err)
	}
	walk("", document)
	return all
}

// TestExtends: a file of testdata/extends that holds what differs changes that, and nothing else; or wrong names, what an
// upgrade took away, and what contradicts the built-in catalogue are told, each at its line. It stands beside the file.
func TestExtends(t *testing.T) {
	files, err := filepath.Glob("testdata/extends/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		mustDo(t, err)
		var said strings.Builder
		if _, err := Parse("policies.yaml", content); err != nil {
			said.WriteString(err.Error() + "\n")
		} else {
			said.WriteString(changes(Default(), overlay(t, strings.TrimPrefix(string(content), "extends: built-in\n"))))
		}
		golden.Check(t, strings.TrimSuffix(file, ".yaml")+".txt", said.String())
	}
}

// TestRulesOfAFileComeFirst: before the built-in ones, in place of those of the same name, and whatever these match.
func TestRulesOfAFileComeFirst(t *testing.T) {
	name := Default().Policies[decision.DefaultPolicy].Rules.Classify("LoginInvalido", 0).Name
	c, err := Parse("policies.yaml", []byte("extends: built-in\npolicies:\n  tiss-submission:\n    permanent:\n"+
		"      - {name: everything, codes: [TIMEOUT, GATEWAY], rank: 1, reason: DEFERRED, team: ti}\n"+
		"    transient: [{name: "+name+", phrases: [so isto, our proxy], reason: DEFERRED}]\n"+
		"    presumedPermanent: [{name: card, things: [carteirinha], reason: DEFERRED, team: ti}]\n"))
	mustDo(t, err)
	rules := c.Policies[decision.DefaultPolicy].Rules
	for text, want := range map[string]decision.Reason{
		"TIMEOUT": "DEFERRED", "BAD GATEWAY": "DEFERRED", "só isto": "DEFERRED", "DUPLICATE_CLAIM": "DUPLICATE_CLAIM", "SERVICE_UNAVAILABLE": "SERVICE_UNAVAILABLE",
		"PKIX path building failed at our proxy": "DEFERRED", "Service unavailable at our proxy": "SERVICE_UNAVAILABLE", "our proxy: CPF inválido": "DEFERRED",
		"carteirinha vencida": "DEFERRED", "carteira vencida": "INVALID_PATIENT_DATA",
	} {
		if got := rules.Classify(text, 0).Reason; got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	if got := rules.Classify("LoginInvalido", 0).Name; got == name {
		t.Errorf("%s is what it was, and what takes its place", name)
	}
}

// TestCodesKeepTheirRank: a specified code that a file gives to another team is as strong as before, unless the file says
// otherwise (R2, R25). One that it calls something else is not.
func TestCodesKeepTheirRank(t *testing.T) {
	const start = "policies:\n  tiss-submission:\n"
	for lines, want := range map[string]string{
		"    permanent: [{codes: [DUPLICATE_CLAIM], team: ti}]\n":          "DUPLICATE_CLAIM DUPLICATE_CLAIM",
		"    permanent: [{codes: [DUPLICATE_CLAIM], team: ti, rank: 4}]\n": "TIMEOUT UNKNOWN",
		"    transient: [{codes: [DUPLICATE_CLAIM]}]\n":                    "TIMEOUT UNKNOWN",
	} {
		rules := overlay(t, start+lines).Policies[decision.DefaultPolicy].Rules
		got := rules.Classify("TIMEOUT; second answer: DUPLICATE_CLAIM", 0).Reason + " " + rules.Classify("DuplicateClaimException", 0).Reason
		if string(got) != want {
			t.Errorf("%s%s, want %s", lines, got, want)
		}
	}
	rules := overlay(t, start+"    transient: [{codes: [TIMEOUT], reason: NETWORK_ERROR}]\n").Policies[decision.DefaultPolicy].Rules
	if got := rules.Classify("timeout, certificate expired", 0).Reason; got != "NETWORK_ERROR" {
		t.Errorf("a transient code beside a signature: %s", got)
	}
}

// TestExtendsVersion: a decision's catalogue is another where the whole is, and not for a comment.
func TestExtendsVersion(t *testing.T) {
	none, comment, limit := overlay(t, ""), overlay(t, "# none\n"), overlay(t, "policies: {failed-job: {maxRetries: 2}}\n")
	if none.Version != comment.Version || none.Version == limit.Version || limit.Policies["failed-job"].Catalogue != limit.Version {
		t.Errorf("versions %s, %s with a comment, %s with a limit", none.Version, comment.Version, limit.Version)
	}
}
