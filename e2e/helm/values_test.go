package helm

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"retry-worker/internal/testkit"
)

var notation = regexp.MustCompile(`(?m)^# ?#? ?@(param|extra) (\S+) \S`)

// values reads values.yaml.
func values(t *testing.T, to any) {
	t.Helper()
	testkit.Must(t, yaml.Unmarshal([]byte(testkit.Read(t, filepath.Join(chartDir, "values.yaml"))), to))
}

// TestValuesAreDocumented: every value has a comment that names it, and no comment names another.
func TestValuesAreDocumented(t *testing.T) {
	var document yaml.Node
	values(t, &document)
	documented(t, document.Content[0], "")
}

func documented(t *testing.T, mapping *yaml.Node, prefix string) {
	t.Helper()
	for i := 0; i < len(mapping.Content); i += 2 {
		key, node := mapping.Content[i], mapping.Content[i+1]
		path := prefix + key.Value
		paragraphs := strings.Split(key.HeadComment, "\n\n") // a section's title may be the first
		found := notation.FindStringSubmatch(paragraphs[len(paragraphs)-1])
		want := "param"
		if node.Kind == yaml.MappingNode || node.Kind == yaml.SequenceNode && len(node.Content) == 0 && !scalars[path] {
			want = "extra"
		}
		if found == nil || found[1] != want || found[2] != path {
			t.Errorf("values.yaml line %d: the comment before %s is %q, expected ## @%s %s …", key.Line, path, key.HeadComment, want, path)
		}
		if node.Kind == yaml.MappingNode && len(node.Content) > 0 && !opaque[path] {
			documented(t, node, path+".")
		}
	}
}

// scalars are lists of plain texts; opaque are objects that are Kubernetes' own.
var (
	scalars = map[string]bool{"image.pullSecrets": true, "zeebe.tenantIds": true, "notify.webhooks.allow": true, "ingress.proxies": true}
	opaque  = map[string]bool{"resources": true, "podSecurityContext": true, "containerSecurityContext": true, "dashboards.labels": true}
)

// TestSchemaKnowsEveryValue: values.yaml has what the schema has, of which every object refuses the rest: TestLint holds
// values.yaml against it.
func TestSchemaKnowsEveryValue(t *testing.T) {
	known, schema := map[string]any{}, map[string]any{}
	values(t, &known)
	testkit.Must(t, json.Unmarshal([]byte(testkit.Read(t, filepath.Join(chartDir, "values.schema.json"))), &schema))
	compare(t, schema, schema, known, "")
}

func compare(t *testing.T, root, schema map[string]any, values map[string]any, prefix string) {
	t.Helper()
	if schema["additionalProperties"] != false {
		t.Errorf("the schema of %q lets unknown values through", prefix)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		path := prefix + name
		v, ok := values[name]
		if !ok && path != "global" && path != "resources.claims" {
			t.Errorf("the schema has %s, values.yaml has not", path)
		}
		if inner, isObject := v.(map[string]any); isObject && !opaque[path] && len(inner) > 0 {
			compare(t, root, resolve(root, property), inner, path+".")
		}
	}
}

func resolve(root map[string]any, schema any) map[string]any {
	m, _ := schema.(map[string]any)
	if ref, ok := m["$ref"].(string); ok {
		m, _ = at(root, "definitions", strings.TrimPrefix(ref, "#/definitions/")).(map[string]any)
	}
	return m
}
