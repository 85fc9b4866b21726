package docs_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"retry-worker/internal/config"
	"retry-worker/internal/testkit"
)

var update = flag.Bool("update", false, "write the table of settings anew")

// TestSettingsTableIsUpToDate holds the table of docs/configuration.md, which is made from code.
func TestSettingsTableIsUpToDate(t *testing.T) {
	text := testkit.Read(t, "configuration.md")
	marker := regexp.MustCompile(`(<!-- settings: [^\n]*-->\n)(?:\|[^\n]*\n)*`).FindStringSubmatch(text)
	if marker == nil {
		t.Fatal("configuration.md has no table marked settings")
	}
	want := strings.Replace(text, marker[0], marker[1]+settingsTable(t), 1)
	switch {
	case want == text:
	case !*update:
		t.Error("the table of configuration.md is not up to date; run: go test ./docs -run TestSettingsTable -update")
	default:
		testkit.Must(t, os.WriteFile("configuration.md", []byte(want), 0o644))
	}
}

func settingsTable(t *testing.T) string {
	t.Helper()
	variables := config.Variables()
	var b strings.Builder
	b.WriteString("| variable | default | meaning |\n| --- | --- | --- |\n")
	for i, v := range variables {
		if i == 0 || variables[i-1].Group != v.Group {
			fmt.Fprintf(&b, "| **%s** | | |\n", v.Group)
		}
		if v.Default != "" {
			v.Default = "`" + v.Default + "`"
		}
		names := strings.Join(append([]string{v.Name}, v.Also...), "`, `")
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", names, v.Default, v.Meaning)
	}
	return b.String()
}
