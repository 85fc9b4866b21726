package helm

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"retry-worker/internal/testkit"
)

var (
	shellBlocks = regexp.MustCompile("(?s)```sh\n(.*?)```")
	yamlBlocks  = regexp.MustCompile("(?s)```yaml\n(.*?)```")
	setFlags    = regexp.MustCompile(`--set '?([^\s']+)`)
)

// TestReadme: what the README tells people to type renders; and the first command has three values.
func TestReadme(t *testing.T) {
	content := strings.ReplaceAll(testkit.Read(t, filepath.Join(chartDir, "README.md")), "CLUSTER.REGION", "cluster.region")
	commands := 0
	for _, block := range shellBlocks.FindAllStringSubmatch(content, -1) {
		i := strings.Index(block[1], "helm ")
		if i < 0 {
			continue
		}
		set := flagsOf(block[1][i:])
		if commands++; commands == 1 && len(set) != 3 {
			t.Errorf("the first command has %d values, expected three: %q", len(set), set)
		}
		if strings.Contains(block[1], "upgrade") {
			set = append(set, "database.existingSecret=a")
		}
		renderOne(t, set...)
	}
	for _, block := range yamlBlocks.FindAllStringSubmatch(content, -1) {
		values := map[string]any{}
		testkit.Must(t, yaml.Unmarshal([]byte(block[1]), &values))
		if r := render(t, helmCase{Name: block[1], Values: values}); r.Error != "" {
			t.Errorf("%s\n%s", r.Error, block[1])
		}
		commands++
	}
	_, paragraph, _ := strings.Cut(content, "**OpenShift.**")
	openshift := flagsOf(paragraph)
	r := renderOne(t, openshift...)
	if commands != 6 || len(openshift) != 4 || at(r.pod(t), "securityContext", "runAsUser") != nil {
		t.Errorf("%d recipes; OpenShift's: %q, %v", commands, openshift, at(r.pod(t), "securityContext"))
	}
}

func flagsOf(command string) []string {
	var set []string
	for _, found := range setFlags.FindAllStringSubmatch(command, -1) {
		set = append(set, strings.TrimRight(found[1], "`."))
	}
	return set
}
