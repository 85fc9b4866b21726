package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"retry-worker/internal/api"
)

// operation is one operation of the API.
type operation struct {
	method, path         string
	summary, description string
	fields               []field
}

// field is a parameter of an operation, or a member of its body.
type field struct {
	name, in, usage string // in is path, query, body or, further in, a member of the body
	kind            string // string, integer, number or boolean
	values          []string
	instant         bool
}

// flagNames are the flags that do not have their field's own name.
var flagNames = map[string]string{"q": "search", "forceRetry": "force", "submissionDeadline": "deadline"}

// flag returns the name of the flag that gives a field.
func (f *field) flag() string {
	if f.in == "filter" {
		return "filter " + f.name
	}
	return cmp.Or(flagNames[f.name], strings.ReplaceAll(worded(f.name), " ", "-"))
}

// register adds the field's flag to a command.
func (f *field) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	switch f.kind {
	case "", "object":
	case "boolean":
		flags.Bool(f.flag(), false, f.usage)
	case "integer":
		flags.Int64(f.flag(), 0, f.usage)
	case "number":
		flags.Float64(f.flag(), 0, f.usage)
	default:
		flags.String(f.flag(), "", f.usage)
		_ = cmd.RegisterFlagCompletionFunc(f.flag(), cobra.FixedCompletions(f.values, cobra.ShellCompDirectiveNoFileComp))
	}
}

// The API's OpenAPI document, as far as commands are made of it.
type (
	document struct {
		Paths      map[string]pathItem
		Components struct {
			Parameters map[string]parameter
			Schemas    map[string]schema
		}
	}
	pathItem struct {
		Parameters []parameter
		Operations map[string]struct {
			Summary, Description string
			Parameters           []parameter
			RequestBody          struct {
				Content map[string]struct{ Schema schema }
			} `yaml:"requestBody"`
		} `yaml:",inline"`
	}
	parameter struct {
		Ref                   string `yaml:"$ref"`
		Name, In, Description string
		Schema                schema
	}
	schema struct {
		Ref                 string `yaml:"$ref"`
		Description, Format string
		Type, Default       any
		Enum                []any
		Minimum, Maximum    any
		OneOf               []schema `yaml:"oneOf"`
		AnyOf               []schema `yaml:"anyOf"`
		Properties          map[string]schema
	}
)

// description reads the API's OpenAPI document.
var description = sync.OnceValue(func() *document {
	d := &document{}
	if err := yaml.Unmarshal(api.OpenAPI, d); err != nil {
		panic(fmt.Sprintf("the API's description: %v", err)) // a test reads it
	}
	return d
})

// operation returns an operation of the API by its method and path, such as "GET /causes/{id}".
func (d *document) operation(request string) *operation {
	method, path, _ := strings.Cut(request, " ")
	item := d.Paths["/api/v1"+path]
	o, known := item.Operations[strings.ToLower(method)]
	if !known {
		panic("the API does not describe " + request) // a test makes every command
	}
	op := &operation{method: method, path: path, summary: o.Summary, description: o.Description}
	for _, p := range slices.Concat(item.Parameters, o.Parameters) {
		if p.Ref != "" {
			p = d.Components.Parameters[p.Ref[strings.LastIndex(p.Ref, "/")+1:]]
		}
		op.fields = append(op.fields, d.field(p.Name, p.In, p.Description, &p.Schema))
	}
	body := o.RequestBody.Content["application/json"].Schema
	for name, of := range d.resolved(&body).Properties {
		op.fields = append(op.fields, d.field(name, "body", "", &of))
		for below := range d.resolved(&of).Properties {
			op.fields = append(op.fields, field{name: below, in: name})
		}
	}
	for i := range op.fields {
		op.fields[i].usage = op.inFlags(op.fields[i].usage)
	}
	return op
}

// resolved returns what a schema refers to, and the one of alternatives that is not null.
func (d *document) resolved(s *schema) *schema {
	if s.Ref != "" {
		to := d.Components.Schemas[s.Ref[strings.LastIndex(s.Ref, "/")+1:]]
		to.Description = cmp.Or(s.Description, to.Description)
		return d.resolved(&to)
	}
	for _, other := range slices.Concat(s.OneOf, s.AnyOf) {
		if s.Type == nil && other.Type != "null" {
			other.Description = cmp.Or(s.Description, other.Description)
			return d.resolved(&other)
		}
	}
	return s
}

// field returns a field with what its schema says of it.
func (d *document) field(name, in, usage string, s *schema) field {
	s = d.resolved(s)
	f := field{name: name, in: in, kind: "string", instant: s.Format == "date-time"}
	for _, kind := range append(listOf(s.Type), s.Type) {
		if text, is := kind.(string); is && text != "null" {
			f.kind = text
		}
	}
	for _, value := range s.Enum {
		if value != nil {
			f.values = append(f.values, fmt.Sprint(value))
		}
	}
	about := strings.ReplaceAll(strings.Join(strings.Fields(cmp.Or(usage, s.Description)), " "), "`", "")
	words := []string{strings.TrimSuffix(about, ".")}
	if len(f.values) > 0 && len(f.values) < 12 {
		words = append(words, strings.Join(f.values, ", "))
	}
	if s.Minimum != nil && s.Maximum != nil {
		words = append(words, fmt.Sprintf("%v to %v", s.Minimum, s.Maximum))
	}
	if f.instant && in == "query" {
		words = append(words, "an instant, a date, or an age such as 3d")
	}
	f.usage = strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ": ")
	if s.Default != nil && s.Default != false {
		f.usage = strings.TrimSpace(fmt.Sprintf("%s (default %v)", f.usage, s.Default))
	}
	return f
}

func listOf(v any) []any { list, _ := v.([]any); return list }
