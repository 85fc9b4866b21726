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
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"go.yaml.in/yaml/v3"

	"retry-worker/internal/calendar"
	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/text"
)

// The types of this file are the catalogue as people write it. catalogue.schema.json says what each key means and may
// hold. Every file is validated against it before it is decoded.

type document struct {
	Teams        map[string]Team
	Policies     map[string]policy
	Destinations map[string]yaml.Node // of destinationSettings
}

type policy struct {
	decision.Policy   `yaml:",inline"`
	ID                struct{ Variable, Pattern string }
	Error             struct{ Variable string }
	HTTPStatus        struct{ Variable string } `yaml:"httpStatus"`
	Backoff           backoff
	Vocabulary        classify.Vocabulary
	Permanent         []classify.Rule
	Transient         []classify.Rule
	PresumedPermanent []classify.Rule `yaml:"presumedPermanent"`
	Context           map[string]decision.ContextField
	Calendar          *calendarSettings
}

type backoff struct {
	decision.BackoffRule `yaml:",inline"`
	Constant             time.Duration
	Exponential          *struct {
		Base   time.Duration
		Factor float64
	}
}

// destinationSettings hold what is inherited where the file does not say otherwise.
type destinationSettings struct {
	destination.Settings `yaml:",inline"`
	Own                  *calendarSettings `yaml:"calendar"`
}

type calendarSettings struct {
	Zone     string
	Windows  []calendar.Window
	Holidays []string
}

// durations and figures are the keys of durations, and of numbers with a unit.
var (
	durations = []string{"base", "constant", "list", "min", "max", "rounding", "totalLimit", "within", "every"}
	figures   = []string{"jitter", "failures", "start", "most", "onRateLimit"}
)

// decodable replaces the valid scalars below n with a form of their own by those that YAML decodes: durations as Go has
// them, 12.5% as 0.125, 20/min and x0.5 without their units, and x2 every 15s as a factor and a step.
func decodable(n *yaml.Node, key string) {
	for i, part := range n.Content {
		if n.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			key = n.Content[i-1].Value
		}
		switch factor, every, grows := strings.Cut(part.Value, " every "); {
		case part.Kind != yaml.ScalarNode || isNull(part):
			decodable(part, key)
		case key == "step" && grows:
			n.Content[i] = scalar(duration(every))
			n.Content = append(n.Content, scalar("factor"), scalar(figure(factor)))
		case slices.Contains(durations, key):
			n.Content[i] = scalar(duration(part.Value))
		case slices.Contains(figures, key):
			n.Content[i] = scalar(figure(part.Value))
		}
	}
}

func scalar(value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: value} }

func duration(s string) string {
	d, _ := text.ParseDuration(s)
	return d.String()
}

func figure(s string) string {
	number, isPercentage := strings.CutSuffix(strings.TrimSuffix(strings.TrimPrefix(s, "x"), "/min"), "%")
	if n, err := strconv.ParseFloat(number, 64); err == nil && isPercentage {
		return strconv.FormatFloat(n/100, 'g', -1, 64)
	}
	return number
}

// formats holds the schema's formats that are more than a pattern.
var formats = map[string]func(text string) error{
	"duration 1ms-366d": between(time.Millisecond, text.LongestDuration),
	"duration 10s-1h":   between(10*time.Second, time.Hour),
	"duration 1m-15m":   between(time.Minute, 15*time.Minute),
	"growth": func(text string) error {
		_, every, _ := strings.Cut(text, " every ")
		return between(time.Second, time.Hour)(every)
	},
	"days":     func(text string) error { return calendar.Window{Days: text}.Check() },
	"weekdays": func(text string) error { return calendar.Window{Weekdays: text}.Check() },
	"hours":    func(text string) error { return calendar.Window{Hours: text}.Check() },
}

// between returns a check that a text is a duration from least to most.
func between(least, most time.Duration) func(string) error {
	return func(s string) error {
		if d, ok := text.ParseDuration(s); !ok || d < least || d > most {
			return errors.New("another form") // the schema's title says which one is expected
		}
		return nil
	}
}

//go:embed catalogue.schema.json
var schema []byte

// Schema returns the JSON Schema of the format, for editors too.
func Schema() []byte { return bytes.Clone(schema) }

// schemaName begins the URLs of the schema's parts. Without the slashes it would be a file of the working directory.
const schemaName = "file:///catalogue.schema.json"

// compiler returns the compiler with the schema and all parts of it compiled, so that it only looks them up from now
// on, which is safe for concurrent use.
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
