package catalogue

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"go.yaml.in/yaml/v3"

	"retry-worker/internal/text"
)

//go:embed catalogue.schema.json
var schema []byte

// Schema returns the JSON Schema of the format, for editors too.
func Schema() []byte { return bytes.Clone(schema) }

// schemaName begins the URLs of the schema's parts. Without the slashes it would be a file of the working directory.
const schemaName = "file:///catalogue.schema.json"

// compiler returns the compiler with the schema and all parts of it compiled, so that it only looks them up from now on,
// which is safe for concurrent use.
var compiler = sync.OnceValue(func() *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	for format, check := range formats {
		c.RegisterFormat(&jsonschema.Format{Name: format, Validate: func(v any) error { return check(fmt.Sprint(v)) }})
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err = errors.Join(err, c.AddResource(schemaName, doc)); err != nil {
		panic(err) // cannot be: the tests read what is embedded
	}
	c.MustCompile(schemaName)
	return c
})

// missing says what is expected where a key of path is not there. Who wrote a built-in policy's name wrong misses many
// keys of one cause.
func (r *reader) missing(path string) string {
	policy, ok := strings.CutPrefix(path, "policies.")
	if ok && !strings.Contains(policy, ".") && r.effective != nil {
		if near := text.Nearest(policy, Default().Policies.Names()); near != "" {
			return "this key of a new policy (did you mean " + near + "?)"
		}
	}
	return "this key, which must be there"
}

// refuse reports each value that breaks the schema, and blanks it.
func (r *reader) refuse(e *jsonschema.ValidationError) {
	path := r.path(e.InstanceLocation)
	n, broken := r.at(path), compiler().MustCompile(e.SchemaURL)
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, key := range k.Missing {
			r.problem(join(path, key), "nothing", cmp.Or(broken.Title, r.missing(path)))
		}
	case *kind.AdditionalProperties:
		for _, key := range k.Properties {
			if broken.Properties == nil {
				r.problem(join(path, key), quote(key), broken.Title)
				continue
			}
			expected := "one of " + oneOf(key, keysOf(broken))
			if n.Style&yaml.FlowStyle != 0 && isNull(r.at(join(path, key))) { // {days: 1,10-12}
				expected += "; or quotes around a value with a comma"
			}
			r.problem(join(path, key), "the unknown key "+quote(key), expected)
		}
	case *kind.UniqueItems:
		again := k.Duplicates[1]
		r.problem(itemOf(path, again), describe(n.Content[again])+" again", "each once")
	case *kind.MinItems:
		r.problem(path, "an empty list", "at least one item, or no such key")
	case *kind.MaxItems:
		r.problem(path, fmt.Sprintf("%d items", k.Got), fmt.Sprintf("at most %d", k.Want))
	case *kind.MaxProperties:
		r.problem(path, fmt.Sprintf("%d keys", k.Got), fmt.Sprintf("at most %d", k.Want))
	default:
		for _, cause := range e.Causes {
			r.refuse(cause)
		}
		if len(e.Causes) == 0 {
			r.problem(path, cmp.Or(broken.Comment, describe(n)), expectation(broken, n.Value))
			blank(n, typeOf(broken) == "object", path)
		}
	}
}

// path returns the path of a location that the validator names.
func (r *reader) path(location []string) (path string) {
	for _, token := range location {
		if i, err := strconv.Atoi(token); err == nil && r.at(path).Kind == yaml.SequenceNode {
			path = itemOf(path, i)
		} else {
			path = join(path, token)
		}
	}
	return path
}

// shapes words the types that messages name.
var shapes = map[string]string{"array": "a list", "boolean": "true or false", "integer": "a whole number",
	"number": "a number"}

// typeOf returns the type that s asks for; empty if none, or one of several.
func typeOf(s *jsonschema.Schema) string {
	if s.Types == nil || len(s.Types.ToStrings()) > 1 {
		return ""
	}
	return s.Types.ToStrings()[0]
}

// keysOf returns the keys that s knows, in alphabetical order.
func keysOf(s *jsonschema.Schema) []string { return slices.Sorted(maps.Keys(s.Properties)) }

// expectation says in words what s expects in place of a value.
func expectation(s *jsonschema.Schema, value string) string {
	switch {
	case s.Title != "" && s.PatternProperties != nil:
		return "a mapping, each key " + s.Title
	case s.Title != "":
		return s.Title
	case s.Enum != nil:
		var values []string
		for _, v := range s.Enum.Values {
			values = append(values, fmt.Sprint(v))
		}
		return "one of " + oneOf(value, slices.Compact(values))
	case s.Minimum != nil:
		return shapes[typeOf(s)] + " from " + s.Minimum.RatString() + " to " + s.Maximum.RatString()
	case s.Properties != nil:
		return "a mapping of " + strings.Join(keysOf(s), ", ")
	}
	return shapes[typeOf(s)]
}

// describe returns n as messages show it.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	const quoted = yaml.LiteralStyle | yaml.FoldedStyle | yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle
	switch {
	case isNull(n):
		return "nothing"
	case n.Style&quoted != 0, n.Tag == "!!str":
		return quote(n.Value)
	default: // a number, true, a date
		return strings.Trim(quote(n.Value), `"`)
	}
}
