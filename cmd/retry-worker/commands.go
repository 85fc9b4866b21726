package main

import (
	"cmp"
	"context"
	_ "embed" // commands.txt
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"retry-worker/internal/api"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
)

// commandsText describes every command, and first of all the program: a heading with its path, its arguments and the
// request of the API that it sends; its summary, unless that is the request's, and further paragraphs; its flags; after
// a colon the columns of its table; and indented examples.
//
//go:embed commands.txt
var commandsText string

// A command is one of commands.txt.
type command struct {
	*cobra.Command
	path    string            // such as audit export
	op      operation         // of the API; without an Operation if it sends none, or does more than send it
	columns string            // of a list's table; paths within an item
	usages  map[string]string // of flags
	program *command          // has the usages of flags that several commands have
}

// entryOf returns the command that an entry of commands.txt describes.
func entryOf(entry string) *command {
	heading, rest, _ := strings.Cut(entry, "\n")
	use, request, sends := strings.Cut(heading, " = ")
	words := strings.Fields(use)
	named := 1 + slices.IndexFunc(words[1:], func(w string) bool { return strings.ToUpper(w) == w })
	if named == 0 {
		named = len(words)
	}
	cmd := &command{path: strings.Join(words[:named], " "), usages: map[string]string{},
		Command: &cobra.Command{Use: strings.Join(words[named-1:], " "), Args: takes(len(words) - named)}}
	var texts, examples []string
	for line := range strings.Lines(rest) {
		line = strings.TrimSuffix(line, "\n")
		if name, usage, is := strings.Cut(line, ": "); is && strings.HasPrefix(name, "--") {
			cmd.usages[name[len("--"):]] = usage
		} else if is && name == "" {
			cmd.columns = usage
		} else if strings.HasPrefix(line, "  ") {
			examples = append(examples, line)
		} else {
			texts = append(texts, line)
		}
	}
	cmd.Example = strings.Join(examples, "\n")
	if strings.Contains(use, "|") {
		cmd.Args = cobra.ArbitraryArgs // it has a task, which checks them
	}
	if sends {
		cmd.op = operationOf(request)
		summary := cmd.op.Summary + " (role " + cmd.op.Action.Least().String() + ")"
		texts = append([]string{summary, summary + ".", cmd.op.Detail}, texts...)
	}
	cmd.Short = texts[0]
	for _, paragraph := range texts[1:] {
		cmd.Long += strings.TrimPrefix(wrapped(paragraph, ""), "\n")
	}
	cmd.Long = strings.TrimSuffix(cmd.Long, "\n")
	return cmd
}

// usage returns the help of a flag.
func (cmd *command) usage(flag string) string {
	usage := cmp.Or(cmd.usages[flag], cmd.program.usages[flag])
	if usage == "" {
		panic("commands.txt does not describe --" + flag + " of " + cmd.path) // a test makes every command
	}
	return usage
}

// register adds a flag for each field of a struct: a text, a list of texts, or a bool.
func (cmd *command) register(fields any) {
	v, flags := reflect.ValueOf(fields).Elem(), cmd.Flags()
	for _, f := range reflect.VisibleFields(v.Type()) {
		if f.Anonymous {
			continue
		}
		name := strings.ReplaceAll(strings.TrimSpace(worded(f.Name)), " ", "-")
		switch p := v.FieldByIndex(f.Index).Addr().Interface().(type) {
		case *string:
			flags.StringVarP(p, name, f.Tag.Get("short"), *p, cmd.usage(name))
		case *[]string:
			flags.StringArrayVar(p, name, nil, cmd.usage(name))
		case *bool:
			flags.BoolVar(p, name, false, cmd.usage(name))
		}
	}
}

// A task makes a command do what is not a request of the API alone.
type task func(*command)

// with returns a task with a flag for each field of F.
func with[F any](flags F, run func(cmd *command, f *F, args []string) error) task {
	return func(cmd *command) {
		cmd.register(&flags)
		cmd.RunE = func(_ *cobra.Command, args []string) error { return run(cmd, &flags, args) }
	}
}

// does returns a task without flags.
func does(run func(ctx context.Context, args []string) error) task {
	return with(struct{}{}, func(cmd *command, _ *struct{}, args []string) error { return run(cmd.Context(), args) })
}

// tasks returns the tasks by the commands' paths.
func (c *cli) tasks() map[string]task {
	many := func(cmd *command) {
		operationOf(planning).register(cmd, "perMinute")
		with(manyFlags{}, c.decideMany)(cmd)
	}
	return map[string]task{
		"serve": func(cmd *command) {
			cmd.Long += "\n" + settingsHelp()
			does(func(context.Context, []string) error { return c.serve() })(cmd)
		},
		"decide": func(cmd *command) {
			operationOf(decisions).register(cmd)
			with(decideFlags{serverFlags: &c.server}, c.decide)(cmd)
		},
		"dead-letters retry": many, "dead-letters discard": many, "dead-letters accept": many,
		"deploy":              does(c.deploy),
		"history":             with(historyFlags{decision.DefaultPolicy, journal.DefaultTenant}, c.history),
		"audit verify":        with(verifyFlags{}, c.auditVerify),
		"audit export":        with(exportFlags{Format: "jsonl"}, c.auditExport),
		"journal backup":      does(c.journalBackup),
		"journal rebuild":     with(rebuildFlags{}, c.journalRebuild),
		"journal purge":       with(purgeFlags{}, c.journalPurge),
		"journal erase":       with(eraseFlags{decision.DefaultPolicy}, c.journalErase),
		"plan":                with(planFlags{}, c.plan),
		"policies check":      does(c.policiesCheck),
		"policies show":       with(fileFlag{}, c.policiesShow),
		"policies diff":       with(diffFlags{"90d"}, c.policiesDiff),
		"policies schema":     does(c.policiesSchema),
		"kpi":                 with(kpiFlags{}, c.kpi),
		"dead-letters assign": with(assignFlags{}, c.assign),
		"api":                 with(apiFlags{serverFlags: &c.server}, c.request),
		"token new":           with(tokenFlags{Expires: "90d"}, c.tokenNew),
		"ready":               does(c.ready),
		"check":               does(c.check),
		"version":             does(c.version),
	}
}

// commands returns the program's command, with all others below it.
func (c *cli) commands() *cobra.Command {
	tasks, made := c.tasks(), map[string]*command{}
	for entry := range strings.SplitSeq(strings.TrimSpace(commandsText), "\n\n") {
		cmd := entryOf(entry)
		if len(made) == 0 {
			cmd.path = ""
		} else {
			above := strings.TrimSpace(cmd.path[:strings.LastIndex(" "+cmd.path, " ")])
			made[above].AddCommand(cmd.Command)
		}
		made[cmd.path] = cmd
		cmd.program = made[""]
		do := tasks[cmd.path]
		if cmd.op.Operation != nil {
			cmd.op.register(cmd)
			cmd.register(&c.server)
			if cmd.columns != "" {
				cmd.register(&c.pages)
			}
			cmd.RunE = func(_ *cobra.Command, args []string) error { return c.send(cmd, cmd.op, args) }
		} else if do == nil {
			cmd.Args = noSuchCommand
			cmd.RunE = func(*cobra.Command, []string) error { return nil }
		}
		if do != nil {
			do(cmd)
		}
	}
	return made[""].Command
}

// operations is the API's description.
var operations = sync.OnceValue(api.Description)

// operation is an operation of the API as a command, with a flag for each field.
type operation struct{ *api.Operation }

// operationOf returns the operation of a method and a path, such as "GET /causes/{id}".
func operationOf(request string) operation {
	i := slices.IndexFunc(operations(), func(o *api.Operation) bool { return o.Method+" "+o.Path == request })
	if i < 0 {
		panic("the API does not describe " + request) // a test makes every command
	}
	return operation{operations()[i]}
}

// flagNames holds the flags that differ from their field's name. A key may begin with the field's place.
var flagNames = map[string]string{"q": "search", "forceRetry": "force", "submissionDeadline": "deadline",
	"variables": "var", "followUpAt": "follow-up", "body assignee": "to"}

// flagOf returns the name of a field's flag.
func flagOf(f *api.Field) string {
	return cmp.Or(flagNames[f.Name], flagNames[f.In+" "+f.Name], strings.ReplaceAll(worded(f.Name), " ", "-"))
}

// register adds the flags of the operation's fields, or of those in only, to a command.
func (o operation) register(cmd *command, only ...string) {
	flags := cmd.Flags()
	for _, f := range o.Fields {
		name := flagOf(f)
		if f.In == "path" || f.Type == "object" || len(only) > 0 && !slices.Contains(only, f.Name) {
			continue
		}
		usage := cmp.Or(cmd.usages[name], o.usage(f))
		switch {
		case f.Type == "boolean":
			flags.Bool(name, false, usage)
		case f.Type == "integer" && !f.Any:
			flags.Int64(name, 0, usage)
		case f.Type == "number":
			flags.Float64(name, 0, usage)
		default:
			flags.String(name, "", usage)
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
		for _, member := range f.Members {
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
func (o operation) read(cmd *command, args []string) *request {
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
func (o operation) given(cmd *command) (query url.Values, body map[string]any) {
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
