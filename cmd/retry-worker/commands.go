package main

import (
	"cmp"
	"context"
	_ "embed" // commands.txt
	"encoding/json"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"retry-worker/internal/api"
	"retry-worker/internal/decision"
	"retry-worker/internal/text"
)

// commandsText describes every command, and first of all the program: a heading with its path, its arguments and the
// request of the API that it sends; its summary, unless that is the request's, and further paragraphs; its flags
// besides the request's, with their defaults (those that say nothing are described for the program); after a colon the
// columns of its table; and indented examples.
//
//go:embed commands.txt
var commandsText string

// A command is one of commands.txt.
type command struct {
	*cobra.Command
	path     string            // such as audit export
	op       operation         // of the API; without an Operation if it sends none, or does more than send it
	columns  string            // of a list's table; paths within an item
	usages   map[string]string // of flags; empty where the program's entry has them
	defaults map[string]string // of flags
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
	cmd := &command{path: strings.Join(words[:named], " "), usages: map[string]string{}, defaults: map[string]string{},
		Command: &cobra.Command{Use: strings.Join(words[named-1:], " "), Args: takes(len(words) - named)}}
	if sends {
		cmd.usages = map[string]string{"server": "", "token-file": "", "ca-file": ""}
	}
	var texts, examples []string
	for line := range strings.Lines(rest) {
		line = strings.TrimSuffix(line, "\n")
		if name, usage, is := strings.Cut(line, ": "); strings.HasPrefix(name, "--") {
			name, byDefault, _ := strings.Cut(name[len("--"):], "=")
			cmd.usages[name], cmd.defaults[name] = usage, byDefault
		} else if is && name == "" {
			cmd.columns, cmd.usages["all"] = usage, ""
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
		summary := cmd.op.Summary + " (role " + string(cmd.op.Action.Least()) + ")"
		texts = append([]string{summary, summary + ".", cmd.op.Detail}, texts...)
	}
	cmd.Short = texts[0]
	for _, paragraph := range texts[1:] {
		cmd.Long += strings.TrimPrefix(wrapped(paragraph, ""), "\n")
	}
	cmd.Long = strings.TrimSuffix(cmd.Long, "\n")
	return cmd
}

// flags holds the values of flags that are no fields of a request. commands.txt says which command has which of them.
type flags struct {
	Server, TokenFile, CaFile                                     string // where the API is
	PoliciesFile, Policy, Tenant, Subject, Destination            string
	Since, Until, At, Head, Format, File, Data, Of                string
	MaxAttempts, DelayBetweenAttempts, Name, Role, Teams, Expires string
	All, Yes, Nobody, Confirm, FromUnverified                     bool
	Filter, Var                                                   []string
}

// register adds the flag for a field of c.flags to a command.
func (c *cli) register(cmd *command, name, usage string) {
	v, flags := reflect.ValueOf(&c.flags).Elem(), cmd.Flags()
	field := v.FieldByNameFunc(func(field string) bool { return dashed(field) == name })
	switch p := field.Addr().Interface().(type) { // panics if commands.txt describes another; a test makes every command
	case *string:
		flags.StringVarP(p, name, map[string]string{"data": "d"}[name], cmd.defaults[name], usage)
	case *[]string:
		flags.StringArrayVar(p, name, nil, usage)
	case *bool:
		flags.BoolVar(p, name, false, usage)
	}
}

// dashed returns the flag for a field's name.
func dashed(name string) string { return strings.TrimPrefix(text.Apart(name, "-"), "-") }

// tasks returns, by the commands' paths, what is done by those that do more than send a request of the API.
func (c *cli) tasks() map[string]func(ctx context.Context, args []string) error {
	return map[string]func(ctx context.Context, args []string) error{
		"serve": c.serve, "deploy": c.deploy, "ready": c.ready, "check": c.check, "version": c.version,
		"decide": c.decide, "plan": c.plan, "history": c.history, "kpi": c.kpi, "api": c.request,
		"audit verify": c.auditVerify, "audit export": c.auditExport,
		"journal backup": c.journalBackup, "journal rebuild": c.journalRebuild, "journal purge": c.journalPurge,
		"journal erase": c.journalErase, "token new": c.tokenNew,
		"policies check": c.policiesCheck, "policies show": c.policiesShow, "policies diff": c.policiesDiff,
		"policies schema":    c.policiesSchema,
		"dead-letters retry": c.decideMany, "dead-letters discard": c.decideMany, "dead-letters accept": c.decideMany,
		"dead-letters assign": c.assign,
	}
}

// commands returns the program's command, with all others below it.
func (c *cli) commands() *cobra.Command {
	tasks, made := c.tasks(), map[string]*command{}
	for entry := range strings.SplitSeq(strings.TrimSpace(commandsText), "\n\n") {
		cmd := entryOf(entry)
		if len(made) == 0 {
			made[""], cmd.Args = cmd, noSuchCommand
			continue
		}
		above := strings.TrimSpace(cmd.path[:strings.LastIndex(" "+cmd.path, " ")])
		made[above].AddCommand(cmd.Command)
		made[cmd.path] = cmd
		c.make(cmd, tasks[cmd.path])
		for name, usage := range cmd.usages {
			if cmd.Flags().Lookup(name) == nil { // the request has no such field
				c.register(cmd, name, cmp.Or(usage, made[""].usages[name]))
			}
		}
	}
	return made[""].Command
}

// make has a command do its task, or else send its request.
func (c *cli) make(cmd *command, do func(context.Context, []string) error) {
	if cmd.op.Operation != nil {
		cmd.op.register(cmd)
		if do == nil {
			do = func(ctx context.Context, args []string) error { return c.send(ctx, cmd.op, args) }
		}
	}
	switch cmd.path {
	case "serve":
		cmd.Long += "\n" + settingsHelp()
	case "decide":
		operationOf(decisions).register(cmd)
	case "dead-letters retry", "dead-letters discard", "dead-letters accept":
		operationOf(planning).register(cmd, "perMinute")
	}
	if do == nil {
		cmd.Args, do = noSuchCommand, func(context.Context, []string) error { return nil }
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		c.command = cmd
		return do(cmd.Context(), args)
	}
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
	return cmp.Or(flagNames[f.Name], flagNames[f.In+" "+f.Name], dashed(f.Name))
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

// given returns the query and body of the flags that are set. The API checks them and reports what is missing.
func (o operation) given(flags *pflag.FlagSet) (query url.Values, body map[string]any) {
	query, body = url.Values{}, map[string]any{}
	for _, f := range o.Fields {
		flag := flags.Lookup(flagOf(f))
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
