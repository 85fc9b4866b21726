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

// operation is an operation of the API as a command has it: a flag for each of its fields.
type operation struct{ *api.Operation }

// operationOf returns the operation of a method and a path, such as "GET /causes/{id}".
func operationOf(request string) operation {
	i := slices.IndexFunc(described(), func(o *api.Operation) bool { return o.Method+" "+o.Path == request })
	if i < 0 {
		panic("the API does not describe " + request) // a test makes every command
	}
	return operation{described()[i]}
}

// flagNames are the flags that do not have their field's own name, which may stand behind the place that it is in.
var flagNames = map[string]string{"q": "search", "forceRetry": "force", "submissionDeadline": "deadline",
	"variables": "var", "followUpAt": "follow-up", "body assignee": "to"}

// flagOf returns the name of the flag that gives a field.
func flagOf(f *api.Field) string {
	return cmp.Or(flagNames[f.Name], flagNames[f.In+" "+f.Name], strings.ReplaceAll(worded(f.Name), " ", "-"))
}

// register adds the flags of the operation's fields to a command, or of those that are named only.
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

// usage says what a flag means.
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
	return strings.ToLower(usage[:1]) + usage[1:] // as other flags begin
}

// inFlags returns a message of the API with the operation's fields named as the flags that give them.
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

// read returns the request that a command's flags and arguments ask for.
func (o operation) read(cmd *cobra.Command, args []string) *request {
	query, body := o.given(cmd)
	r := &request{operation: o, path: o.Path, query: query}
	for i, parameter := range pathParameters.FindAllString(o.Path, -1) {
		r.path = strings.Replace(r.path, parameter, url.PathEscape(args[i]), 1)
	}
	if o.Method != http.MethodGet {
		r.body = text.JSON(body)
	}
	return r
}

// given returns what the flags of a command give an operation, as far as they are given: the rest is the API's to say,
// and so is what is wrong with it.
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
