package catalogue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	generator "github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"retry-worker/internal/calendar"
	"retry-worker/internal/decision"
	"retry-worker/internal/testkit/golden"
)

// TestSchemaIsUpToDate: catalogue.schema.json is what the document's types say; -update writes it.
func TestSchemaIsUpToDate(t *testing.T) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	mustDo(t, e.Encode(generateSchema(t)))
	if file, err := os.ReadFile("catalogue.schema.json"); err != nil || !bytes.Equal(Schema(), file) {
		t.Errorf("the embedded schema is another: %v", err)
	}
	golden.Check(t, "catalogue.schema.json", b.String())
}

// generateSchema makes the schema of the document's types and of the comments of their fields.
func generateSchema(t *testing.T) *generator.Schema {
	comments := commentsOf(t, "document.go")
	g := generator.Reflector{
		Anonymous: true, ExpandedStruct: true, Mapper: scalarSchema,
		LookupComment: func(of reflect.Type, field string) string { return comments[of.Name()+"."+field] },
	}
	s := g.Reflect(&document{})
	s.Title = "Catalogue of retry policies"
	names := &generator.Schema{Pattern: nameForm.String()}
	for _, of := range []string{"teams", "policies", "destinations"} {
		property, _ := s.Properties.Get(of)
		property.PropertyNames = names
	}
	policies, _ := s.Properties.Get("policies")
	policies.Required = []string{decision.DefaultPolicy}
	s.Definitions["backoff"].DependentRequired = map[string][]string{"exponential": {"max"}}
	for _, kind := range []string{"permanentRule", "transientRule"} {
		ruleSchema(s.Definitions[kind])
	}
	overlaySchema(t, s)
	return s
}

// overlaySchema lets a file that extends the built-in catalogue leave out what that has.
func overlaySchema(t *testing.T, s *generator.Schema) {
	partial := []string{"policy", "identity", "variable", "jobRetryPolicy", "backoff", "exponential", "destinationOf"}
	for _, name := range partial {
		text, err := json.Marshal(s.Definitions[name])
		mustDo(t, err)
		for _, other := range partial {
			text = bytes.ReplaceAll(text, []byte("defs/"+other+`"`), []byte("defs/"+other+`Changes"`))
		}
		changes := &generator.Schema{}
		mustDo(t, json.Unmarshal(text, changes))
		changes.Required, changes.OneOf, changes.DependentRequired = nil, nil, nil
		s.Definitions[name+"Changes"] = changes
	}
	policies, _ := s.Properties.Get("policies")
	of := func(definition string, required []string) *generator.Schema {
		properties := generator.NewProperties()
		properties.Set("policies", &generator.Schema{AdditionalProperties: &generator.Schema{Ref: "#/$defs/" + definition}, Required: required})
		return &generator.Schema{Properties: properties}
	}
	s.If = &generator.Schema{Required: []string{"extends"}}
	s.Then, s.Else = of("policyChanges", nil), of("policy", policies.Required)
	s.Else.Required, s.Required = s.Required, nil
	policies.AdditionalProperties, policies.Required = nil, nil
}

// ruleSchema adds what no tag can say: a rule matches something, and one of more than codes has a name and a reason.
func ruleSchema(rule *generator.Schema) {
	needs := func(key string) *generator.Schema { return &generator.Schema{Required: []string{key}} }
	var more []*generator.Schema
	for _, l := range matcherLists[1:] {
		more = append(more, needs(l.key))
	}
	rule.AnyOf = append([]*generator.Schema{needs("codes")}, more...)
	rule.If = &generator.Schema{AnyOf: more}
	rule.Then = &generator.Schema{Required: []string{"name", "reason"}}
	name, _ := rule.Properties.Get("name")
	name.Pattern = nameForm.String()
}

// The forms of durations and windows, of which the reader knows more.
const (
	durationForm  = `^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$`
	monthDaysForm = `^[0-9]{1,2}(-[0-9]{1,2})?(, ?[0-9]{1,2}(-[0-9]{1,2})?)*$`
	weekdaysForm  = `^(mon|tue|wed|thu|fri|sat|sun)(-(mon|tue|wed|thu|fri|sat|sun))?(, ?(mon|tue|wed|thu|fri|sat|sun)(-(mon|tue|wed|thu|fri|sat|sun))?)*$`
	hoursForm     = `^[0-2][0-9]:[0-5][0-9]-[0-2][0-9]:[0-5][0-9]$`
)

// scalarSchema is the schema of a scalar with a form of its own.
func scalarSchema(t reflect.Type) *generator.Schema {
	text := func(pattern string) *generator.Schema { return &generator.Schema{Type: "string", Pattern: pattern} }
	orNumber := func(pattern string, least, most int) *generator.Schema {
		number := &generator.Schema{Type: "integer", Minimum: json.Number(fmt.Sprint(least))}
		if most > 0 {
			number.Maximum = json.Number(fmt.Sprint(most))
		}
		return &generator.Schema{AnyOf: []*generator.Schema{text(pattern), number}}
	}
	if values := choices[t]; values != nil {
		s := &generator.Schema{}
		for _, v := range values {
			s.Enum = append(s.Enum, v)
			if strings.Trim(v, "0123456789") == "" {
				s.Enum = append(s.Enum, json.Number(v))
			}
		}
		return s
	}
	switch t {
	case reflect.TypeFor[duration]():
		s := text(durationForm)
		s.MinLength, s.Examples = pointer[uint64](2), []any{"500ms", "5s", "90m", "4h", "1h30m", "2d"}
		return s
	case reflect.TypeFor[destinationName]():
		return text(nameForm.String())
	case reflect.TypeFor[perMinute]():
		return orNumber(perMinuteForm.String(), 1, maxPerMinute)
	case reflect.TypeFor[growth]():
		return text(growthForm.String())
	case reflect.TypeFor[factor]():
		return text(factorForm.String())
	case reflect.TypeFor[calendar.Days]():
		return orNumber(monthDaysForm, 1, 31)
	case reflect.TypeFor[calendar.Weekdays]():
		return text(weekdaysForm)
	case reflect.TypeFor[calendar.Hours]():
		return text(hoursForm)
	case reflect.TypeFor[percent]():
		return text(percentForm.String())
	case reflect.TypeFor[variableName]():
		return text(variableForm.String())
	case reflect.TypeFor[emailAddress]():
		s := text(emailForm.String())
		s.MaxLength = pointer[uint64](maxAddress)
		return s
	case reflect.TypeFor[webhookURL]():
		return text(webhookForm.String())
	case reflect.TypeFor[code]():
		return orNumber(codeForm.String(), 0, 0)
	case reflect.TypeFor[status]():
		return orNumber("^[1-5]([0-9]{2}|xx)$", 100, 599)
	case reflect.TypeFor[tissCode]():
		return orNumber("^[1-9][0-9]([0-9]{2}|xx)$", 1000, 9999)
	case reflect.TypeFor[string]():
		return &generator.Schema{Type: "string", MinLength: pointer[uint64](1), MaxLength: pointer[uint64](maxText)}
	}
	return nil
}

func pointer[T any](v T) *T { return &v }

// commentsOf are the doc comments of a file's types ("type.") and of their fields ("type.Field").
func commentsOf(t *testing.T, file string) map[string]string {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	mustDo(t, err)
	comments := make(map[string]string)
	line := func(g *ast.CommentGroup) string { return strings.Join(strings.Fields(g.Text()), " ") }
	for _, d := range f.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.TYPE {
			continue
		}
		spec := decl.Specs[0].(*ast.TypeSpec)
		comments[spec.Name.Name+"."] = line(decl.Doc)
		for _, field := range spec.Type.(*ast.StructType).Fields.List {
			for _, name := range field.Names {
				comments[spec.Name.Name+"."+name.Name] = line(field.Doc)
			}
		}
	}
	return comments
}

// TestSchemaHelps: every key has a description for editors to show.
func TestSchemaHelps(t *testing.T) {
	var schema struct {
		Defs map[string]struct {
			Properties map[string]struct {
				Description string `json:"description"`
			} `json:"properties"`
		} `json:"$defs"`
	}
	mustDo(t, json.Unmarshal(Schema(), &schema))
	if len(schema.Defs) < 8 {
		t.Errorf("the schema defines %d types, want all of the document's", len(schema.Defs))
	}
	for of, def := range schema.Defs {
		for key, property := range def.Properties {
			if len(property.Description) < 10 {
				t.Errorf("%s.%s has no description: %q", of, key, property.Description)
			}
		}
	}
}

// compiledSchema is the shipped schema, ready to validate with.
func compiledSchema(t *testing.T) *validator.Schema {
	t.Helper()
	doc, err := validator.UnmarshalJSON(bytes.NewReader(Schema()))
	mustDo(t, err)
	c := validator.NewCompiler()
	mustDo(t, c.AddResource("catalogue.json", doc))
	s, err := c.Compile("catalogue.json")
	mustDo(t, err)
	return s
}

// validate holds YAML against the schema as an editor does.
func validate(s *validator.Schema, content []byte) error {
	var v any
	if err := yaml.Unmarshal(content, &v); err != nil {
		return err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	instance, err := validator.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return err
	}
	return s.Validate(instance)
}

func TestSchemaTakesSoundCatalogues(t *testing.T) {
	s := compiledSchema(t)
	files, err := filepath.Glob("../../docs/examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	for _, file := range append(files, "default.yaml", "testdata/every-key.yaml", "testdata/extends/all-kinds-of-changes.yaml", "testdata/calendars.yaml") {
		content, err := os.ReadFile(file)
		mustDo(t, err)
		if err := validate(s, content); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestSchemaRefusesBadCatalogues: all but what a JSON Schema cannot say.
func TestSchemaRefusesBadCatalogues(t *testing.T) {
	cannot := map[string]string{
		"aliases":                "YAML's own, resolved before the schema is asked", // and <<, which is merged
		"several-documents":      "only the first is looked at here",
		"broken-second-document": "likewise",
		"ids":                    "what a pattern matches",
		"examples":               "what a rule matches",
		"patterns":               "what a pattern matches",
		"tags":                   "YAML's own",
		"rank-and-vocabulary":    "which ranks a rule of its class can have, and what a word is",
	}
	s := compiledSchema(t)
	files, err := filepath.Glob("testdata/bad/*.yaml")
	mustDo(t, err)
	refused := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		mustDo(t, err)
		if _, ok := cannot[strings.TrimSuffix(filepath.Base(file), ".yaml")]; ok {
			continue
		}
		refused++
		if validate(s, content) == nil {
			t.Errorf("%s is taken", file)
		}
	}
	if refused < 20 {
		t.Errorf("%d files were held against the schema", refused)
	}
}
