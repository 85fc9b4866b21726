package main

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"retry-worker/internal/api"
	"retry-worker/internal/decision"
	"retry-worker/internal/text"
)

// described is the API's description.
var described = sync.OnceValue(api.Description)

// operation is an operation of the API as a command, with a flag for each field.
type operation struct{ *api.Operation }

// operationOf returns the operation of a method and a path, such as "GET /causes/{id}".
func operationOf(request string) operation {
	i := slices.IndexFunc(described(), func(o *api.Operation) bool { return o.Method+" "+o.Path == request })
	if i < 0 {
		panic("the API does not describe " + request) // a test makes every command
	}
	return operation{described()[i]}
}

// flagNames holds the flags that differ from their field's name. A key may begin with the field's place.
var flagNames = map[string]string{"q": "search", "forceRetry": "force", "submissionDeadline": "deadline",
	"variables": "var", "followUpAt": "follow-up", "body assignee": "to"}

// flagOf returns the name of a field's flag.
func flagOf(f *api.Field) string {
	return cmp.Or(flagNames[f.Name], flagNames[f.In+" "+f.Name], strings.ReplaceAll(worded(f.Name), " ", "-"))
}

// register adds the flags of the operation's fields, or of those in only, to a command.
func (o operation) register(cmd *cobra.Command, only ...string) {
	flags := cmd.Flags()
	for _, f := range o.Fields {
		name := flagOf(f)
		if f.In == "path" || f.Type == "object" || len(only) > 0 && !slices.Contains(only, f.Name) {
			continue
		}
		switch {
		case f.Type == "boolean":
			flags.Bool(name, false, o.usage(f))
		case f.Type == "integer" && !f.Any:
			flags.Int64(name, 0, o.usage(f))
		case f.Type == "number":
			flags.Float64(name, 0, o.usage(f))
		default:
			flags.String(name, "", o.usage(f))
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(f.Enum, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

// usage returns the help of a field's flag.
func (o operation) usage(f *api.Field) string {
	words := []string{strings.TrimRight(strings.ReplaceAll(f.Doc, "`", ""), ".,")}
	switch {
	case len(f.Enum) >= 12:
		words = append(words, "such as "+f.Enum[0]+" or "+f.Enum[1])
	case len(f.Enum) > 0:
		words = append(words, strings.Join(f.Enum, ", "))
	case f.Format == "date-time":
		words = append(words, "an instant such as 2026-03-01T18:00:00-03:00")
	case f.Doc == "":
		words = append(words, worded(f.Name))
	}
	usage := strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ": ")
	for _, other := range o.Fields {
		if strings.ToLower(other.Name) != other.Name {
			usage = strings.ReplaceAll(usage, other.Name, "--"+flagOf(other))
		}
	}
	if f.Default != "" {
		usage += " (default " + f.Default + ")"
	}
	usage = strings.TrimSpace(usage)
	return strings.ToLower(usage[:1]) + usage[1:] // like cobra's own flags
}

// inFlags returns an API message with the operation's fields replaced by their flags.
func (o operation) inFlags(message string) string {
	for _, f := range o.Fields {
		if f.In != "path" {
			message = inFlag(message, f.Name, "--"+flagOf(f))
		}
	}
	for _, f := range o.Fields {
		for _, member := range f.Members() {
			message = inFlag(message, member.Name, "--"+f.Name+" "+member.Name)
		}
	}
	return message
}

func inFlag(message, name, flag string) string {
	said := regexp.MustCompile(`(^|[^-\w])(?:(?:an?|the) )?` + regexp.QuoteMeta(name) + `( is| has| begins| with)\b`)
	message = said.ReplaceAllString(message, "${1}"+flag+"$2")
	if strings.ToLower(name) != name && !strings.Contains(flag, " ") {
		message = regexp.MustCompile(`(^|[^"\w])`+regexp.QuoteMeta(name)+`\b`).ReplaceAllString(message, "${1}"+flag)
	}
	return message
}

// request is a request to the API.
type request struct {
	operation
	path  string
	query url.Values
	body  []byte
}

var pathParameters = regexp.MustCompile(`\{\w+\}`)

// read returns the request of a command's flags and arguments.
func (o operation) read(cmd *cobra.Command, args []string) *request {
	query, body := o.given(cmd)
	r := &request{operation: o, path: o.Path, query: query}
	for i, parameter := range pathParameters.FindAllString(o.Path, -1) {
		escaped := strings.ReplaceAll(url.PathEscape(args[i]), ".", "%2E") // an id may be ..
		r.path = strings.Replace(r.path, parameter, escaped, 1)
	}
	if o.Method != http.MethodGet {
		r.body = text.JSON(body)
	}
	return r
}

// given returns the query and body of the flags that are set. The API checks them and reports what is missing.
func (o operation) given(cmd *cobra.Command) (query url.Values, body map[string]any) {
	query, body = url.Values{}, map[string]any{}
	for _, f := range o.Fields {
		flag := cmd.Flags().Lookup(flagOf(f))
		if flag == nil || !flag.Changed || f.In == "path" {
			continue
		}
		value := flag.Value.String()
		switch {
		case f.In == "query":
			query.Set(f.Name, value)
		case f.Type == "string":
			body[f.Name] = value
		case f.Any:
			body[f.Name] = json.RawMessage(decision.Typed(value))
		default:
			body[f.Name] = json.RawMessage(value)
		}
	}
	return query, body
}
