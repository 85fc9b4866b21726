package catalogue

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"go.yaml.in/yaml/v3"
)

//go:embed catalogue.schema.json
var schema []byte

// Schema returns the JSON Schema of the format, for editors too.
func Schema() []byte { return bytes.Clone(schema) }

// validator returns the compiled schema, and the schema as a tree, from which messages are worded.
var validator = sync.OnceValues(func() (*jsonschema.Schema, *yaml.Node) {
	const name = "catalogue.schema.json"
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	for format, check := range formats {
		c.RegisterFormat(&jsonschema.Format{Name: format, Validate: func(v any) error { return check(fmt.Sprint(v)) }})
	}
	var tree yaml.Node
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err = errors.Join(err, yaml.Unmarshal(schema, &tree), c.AddResource(name, doc)); err != nil {
		panic(err) // cannot be: the tests read what is embedded
	}
	return c.MustCompile(name), tree.Content[0]
})

// validate reports each value that breaks the schema, and blanks it.
func (r *reader) validate(catalogue any) {
	schema, _ := validator()
	if wrong, ok := errors.AsType[*jsonschema.ValidationError](schema.Validate(catalogue)); ok {
		r.refuse(wrong)
	}
}

func (r *reader) refuse(e *jsonschema.ValidationError) {
	path := r.path(e.InstanceLocation)
	n, expected := r.at(path), expectedBy(e.SchemaURL)
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, key := range k.Missing {
			r.problem(join(path, key), "nothing", "this key, which must be there")
		}
	case *kind.AdditionalProperties:
		for _, key := range k.Properties {
			if expected.keys == nil {
				r.problem(join(path, key), quote(key), expected.title)
			} else {
				r.problem(join(path, key), "the unknown key "+quote(key), "one of "+oneOf(key, expected.keys))
			}
		}
	case *kind.FalseSchema:
		r.problem(path, describe(n), "no such key in this list")
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
			r.problem(path, describe(n), expected.of(n))
			blank(n, expected.kind, path)
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

// expectation holds what a part of the schema says of a value.
type expectation struct {
	title            string
	kind             string
	values, keys     []string
	minimum, maximum string
}

// expectedBy returns the expectation of the schema's part at a URL.
func expectedBy(url string) expectation {
	_, n := validator()
	if _, pointer, found := strings.Cut(url, "#/"); found {
		for token := range strings.SplitSeq(pointer, "/") {
			n = child(n, token)
		}
	}
	if ref := child(n, "$ref").Value; ref != "" {
		return expectedBy(ref)
	}
	e := expectation{title: child(n, "title").Value, kind: child(n, "type").Value, keys: keysOf(child(n, "properties")),
		minimum: child(n, "minimum").Value, maximum: child(n, "maximum").Value}
	for _, value := range child(n, "enum").Content {
		e.values = append(e.values, value.Value)
	}
	return e
}

// shapes words the types that messages name.
var shapes = map[string]string{"array": "a list", "boolean": "true or false"}

// of says in words what is expected in place of n.
func (e *expectation) of(n *yaml.Node) string {
	switch {
	case e.title != "" && e.kind == "object":
		return "a mapping, each key " + e.title
	case e.title != "":
		return e.title
	case e.values != nil:
		return "one of " + oneOf(n.Value, slices.Compact(e.values))
	case e.kind == "integer":
		return "a whole number from " + e.minimum + " to " + e.maximum
	case e.kind == "number":
		return "a number from " + e.minimum + " to " + e.maximum
	case e.keys != nil:
		return "a mapping of " + strings.Join(e.keys, ", ")
	}
	return shapes[e.kind]
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
