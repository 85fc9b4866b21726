package catalogue

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"retry-worker/internal/decision"
)

// TestSchemaAndTypes: each key of the schema is explained in editors, stands in one of these files, and is read into a
// field, which TestEveryKey and TestCalendars look at. The choices are the program's.
func TestSchemaAndTypes(t *testing.T) {
	type object struct {
		Properties map[string]struct {
			Description string
			Enum        []any
		}
	}
	var schema struct {
		object
		Defs map[string]object `json:"$defs"`
	}
	mustDo(t, json.Unmarshal(Schema(), &schema))
	var every string
	for _, file := range []string{"testdata/every-key.yaml", "testdata/calendars.yaml", "default.yaml"} {
		content := readFile(t, file)
		known := struct {
			Extends  string
			Version  int
			document `yaml:",inline"`
		}{}
		var root yaml.Node
		mustDo(t, yaml.Unmarshal([]byte(content), &root))
		decodable(&root, "")
		strictly(t, &root, &known)
		for _, n := range known.Destinations {
			strictly(t, &n, new(destinationSettings))
		}
		every += content
	}
	delete(schema.Defs, "wholePolicy")
	keys := 0
	for name, def := range schema.Defs {
		for key, property := range def.Properties {
			if keys++; len(property.Description) < 10 {
				t.Errorf("%s.%s has no description: %q", name, key, property.Description)
			}
			if !strings.Contains(every, key+":") {
				t.Errorf("no file has %s.%s", name, key)
			}
		}
	}
	if keys < 70 {
		t.Errorf("%d keys", keys)
	}
	for _, choice := range []struct {
		def, key string
		want     []string
	}{
		{"rule", "reason", textsOf(decision.RuleReasons())}, {"contextField", "type", textsOf(decision.ContextTypes())},
		{"policy", "emptyError", textsOf([]decision.EmptyError{decision.RejectEmptyError, decision.AssumeTransient})},
		{"policy", "unknownError", textsOf([]decision.UnknownError{decision.RetryUnknown, decision.GiveUpUnknown})},
	} {
		got := schema.Defs[choice.def].Properties[choice.key].Enum
		got = slices.DeleteFunc(got, func(v any) bool { _, isText := v.(string); return !isText })
		if len(got) != len(choice.want) || slices.ContainsFunc(got, func(v any) bool { return !slices.Contains(choice.want, v.(string)) }) {
			t.Errorf("%s.%s is one of %v, want %v", choice.def, choice.key, got, choice.want)
		}
	}
}

// strictly decodes n, each key of which must have a field.
func strictly(t *testing.T, n *yaml.Node, into any) {
	content, err := yaml.Marshal(n)
	mustDo(t, err)
	d := yaml.NewDecoder(bytes.NewReader(content))
	d.KnownFields(true)
	mustDo(t, d.Decode(into))
}

func textsOf[T ~string](values []T) (texts []string) {
	for _, v := range values {
		texts = append(texts, string(v))
	}
	return texts
}

// TestSchemaTakesChanges: an editor holds a file that extends the built-in catalogue against the schema as it is, wherever
// the program stands.
func TestSchemaTakesChanges(t *testing.T) {
	content, err := os.ReadFile("testdata/extends/all-kinds-of-changes.yaml")
	mustDo(t, err)
	var v map[string]any
	mustDo(t, yaml.Unmarshal(content, &v))
	compiler()
	t.Chdir(t.TempDir())
	for _, extends := range []bool{true, false} {
		if !extends {
			v = maps.Clone(v)
			delete(v, "extends")
		}
		text, err := json.Marshal(v)
		mustDo(t, err)
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		mustDo(t, err)
		if err := compiler().MustCompile(schemaName).Validate(instance); (err == nil) != extends {
			t.Errorf("extends %v: %v", extends, err)
		}
	}
}
