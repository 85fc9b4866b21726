package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/config"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/smallfile"
	"retry-worker/internal/text"
)

var pathParameters = regexp.MustCompile(`\{\w+\}`)

// send sends a request with the command's flags and with arguments, and prints the answer.
func (c *cli) send(ctx context.Context, op operation, args []string) error {
	path := op.Path
	for i, parameter := range pathParameters.FindAllString(path, -1) {
		escaped := strings.ReplaceAll(url.PathEscape(args[i]), ".", "%2E") // an id may be ..
		path = strings.Replace(path, parameter, escaped, 1)
	}
	query, body := op.given(c.command.Flags())
	if c.command.columns != "" {
		return c.list(ctx, op, path, query)
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	answer, err := c.ask(ctx, op, path, text.JSON(body))
	if err != nil {
		return err
	}
	return c.print(answer, "claims: id deadline policy heldSince")
}

// ask sends a request to the API and returns its answer. A GET takes no body.
func (c *cli) ask(ctx context.Context, op operation, path string, body []byte) ([]byte, error) {
	client, err := c.api()
	if err != nil {
		return nil, err
	}
	c.begun = true
	if op.Method == http.MethodGet {
		body = nil
	}
	answer, err := client.Send(ctx, op.Method, path, body)
	if refused, is := errors.AsType[*access.Refusal](err); is {
		refused.Code = inertLine(refused.Code, maxValue)
		refused.Message = op.inFlags(inertLine(refused.Message, maxValue))
	}
	return answer, err
}

// list prints one page of a list, or all.
func (c *cli) list(ctx context.Context, op operation, path string, query url.Values) error {
	for first := true; ; first = false {
		answer, err := c.ask(ctx, op, path+"?"+query.Encode(), nil)
		if err != nil {
			return err
		}
		page, err := text.Decode(answer)
		o, _ := page.(text.Object)
		items, is := o.Get("items").([]any)
		next, more := o.Get("next").(string)
		switch {
		case err != nil || !is:
			return c.client.Foreign(errors.New("it is no list"))
		case c.json():
			err = c.print(answer)
		case len(items) > 0:
			c.table(items, c.command.columns, first, maxCell)
		case first && !more:
			fmt.Fprintln(c.out, "Nothing was found.")
		}
		if err != nil || !more || !c.All || c.out.err != nil { // stop if nothing more can be written
			if more && !c.All && !c.json() {
				fmt.Fprintln(c.out, "\nMore follow: --all lists them all.")
			}
			return err
		}
		if next == query.Get("cursor") {
			return c.client.Foreign(errors.New("it gives the same page again and again"))
		}
		query.Set("cursor", next)
	}
}

// instantOf parses an instant, a date (midnight UTC) or an age; an empty text is the zero time.
func instantOf(flag, text string) (time.Time, error) {
	t, ok := deadletter.ParseInstant(text, time.UTC, time.Now())
	if !ok {
		return t, fmt.Errorf("%s is %q, expected an instant such as 2026-03-01T08:00:00-03:00, a date such as "+
			"2026-03-01 (midnight UTC), or an age such as 90m, 2h, 3d or 1w", flag, text)
	}
	return t, nil
}

// request sends any request to the API.
func (c *cli) request(ctx context.Context, args []string) error {
	method, path := strings.ToUpper(args[0]), args[1]
	switch {
	case !slices.Contains([]string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete}, method):
		return fmt.Errorf("METHOD is %q, expected GET, POST, PUT or DELETE", args[0])
	case !strings.HasPrefix(path, "/"):
		return fmt.Errorf("PATH is %q, expected what follows /api/v1, such as /dead-letters", path)
	case method == http.MethodGet && c.Data != "":
		return errors.New("--data is given, but GET takes no body; put parameters behind a ? in PATH")
	}
	answer, err := c.ask(ctx, operation{&api.Operation{Method: method}}, path, []byte(cmp.Or(c.Data, "{}")))
	if err != nil {
		return err
	}
	if c.json() {
		return c.print(answer)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, answer, "", "  "); err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.out, b.String())
	return err
}

// planning is the request of a bulk run's plan.
const planning = "POST /bulk-runs/plan"

// decideMany decides on one dead letter, or on all that --filter chooses.
func (c *cli) decideMany(ctx context.Context, args []string) error {
	changed := c.command.Flags().Changed
	switch many := changed("filter"); {
	case !many && (c.Yes || changed("per-minute")):
		return errors.New("--yes or --per-minute is given, expected them with --filter only")
	case many && (len(args) > 0 || changed("deadline") || changed("protocol-number")):
		return errors.New("--filter and an id, --deadline or --protocol-number are given, expected many without " +
			"them, or one without --filter")
	case !many && len(args) != 1:
		return fmt.Errorf("nothing is chosen, expected the id of one dead letter, or --filter key=value for many "+
			"(--filter all for every open one); `%s --help` says more", c.command.CommandPath())
	case many:
		return c.bulk(ctx)
	}
	return c.send(ctx, c.command.op, args)
}

// assign assigns one dead letter, or all of somebody's.
func (c *cli) assign(ctx context.Context, args []string) error {
	to, many := c.command.Flags().Changed("to"), c.Of != ""
	switch {
	case len(args) > 1 || (len(args) == 1) == many || c.Nobody && to || many && !c.Nobody && !to:
		return errors.New("expected the id of one dead letter, or --of NAME for all that somebody has, with --to or " +
			"--nobody")
	case !c.Nobody && !to:
		_ = c.command.Flags().Set("to", deadletter.Me) // cannot fail for a text
	case many:
		return c.send(ctx, operationOf("PUT /assignees/{name}"), []string{c.Of})
	}
	return c.send(ctx, c.command.op, args)
}

// parseFilter returns the filters of --filter in the API's form.
func parseFilter(given []string) (map[string]string, error) {
	filter := map[string]string{}
	for _, g := range given {
		key, value, pair := strings.Cut(g, "=")
		_, twice := filter[key]
		switch {
		case g == "all" && len(given) == 1:
			return filter, nil
		case !pair || value == "":
			return nil, fmt.Errorf("--filter is %q, expected key=value, or all alone", g)
		case twice:
			return nil, fmt.Errorf("--filter %s is given twice, expected once: all filters must fit", key)
		}
		filter[key] = value
	}
	return filter, nil
}

// bulk shows what a bulk run would do; with --yes it starts the run.
func (c *cli) bulk(ctx context.Context) error {
	filter, err := parseFilter(c.Filter)
	if err != nil {
		return err
	}
	_, command := operationOf(planning).given(c.command.Flags())
	command["action"], command["filter"] = c.command.Name(), filter
	text, err := c.post(ctx, "/bulk-runs/plan", command)
	if err != nil {
		return err
	}
	var plan api.BulkPlan
	if err := json.Unmarshal(text, &plan); err != nil {
		return c.client.Foreign(err)
	}
	command["reason"], command["token"] = c.command.Flags().Lookup("reason").Value.String(), plan.Token
	command["filter"] = plan.Filter // has an instant where an age was given
	shown := any(text)
	if !c.json() { // without the token, and with flags in place of the API's fields
		for i, r := range plan.Refused {
			plan.Refused[i].Message = operationOf("POST /dead-letters/{id}/retry").inFlags(r.Message)
		}
		plan.Token = ""
		shown = plan
	}
	err = c.print(shown, "causes: fingerprint count reason pattern teams policy lastSeen")
	switch {
	case err != nil:
		return err
	case !c.Yes && !c.json():
		fmt.Fprintln(c.out, "\nThis is a plan: --yes with a --reason carries it out.")
		return nil
	case !c.Yes:
		return nil
	case plan.Ready == 0:
		return fmt.Errorf("nothing was started: of %d open dead letters that fit, none can be decided", plan.Total)
	}
	if text, err = c.post(ctx, "/bulk-runs", command); err != nil {
		return err
	}
	if !c.json() {
		fmt.Fprintln(c.out, "\nA bulk run does it:")
	}
	return c.print(text)
}

// post sends a body to the API and returns the answer.
func (c *cli) post(ctx context.Context, path string, body map[string]any) ([]byte, error) {
	return c.ask(ctx, operationOf("POST "+path), path, text.JSON(body))
}

const (
	// apiTime bounds one request to the API.
	apiTime = 40 * time.Second
	// tokenVariable holds the token for the API. There is no flag for it, because process lists show flags.
	tokenVariable = "RETRY_WORKER_TOKEN"
)

// api returns the client for the server that flags and environment name. It is made once.
func (c *cli) api() (*api.Client, error) {
	if c.client != nil {
		return c.client, nil
	}
	settings, err := config.Load("RETRY_WORKER_HTTP_ADDR")
	if err != nil {
		return nil, err
	}
	base, wrongServer := baseOf(cmp.Or(c.Server, settings.HTTPAddr), settings.TLSCertFile != "" && c.Server == "")
	source, token, noToken := tokenVariable, settings.Token, error(nil)
	if c.TokenFile != "" {
		source = "--token-file " + c.TokenFile
		token, noToken = readToken(c.TokenFile)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		noToken = fmt.Errorf("%s holds no token (not shown), expected one as `retry-worker token new` prints it", source)
	}
	roots, noRoots := smallfile.Authorities("--ca-file", c.CaFile)
	client := &api.Client{Base: base, Token: token, Flag: "server", TokenFrom: tokenVariable + " or --token-file",
		// No proxy: the environment's is for other hosts. No redirections: the token is for this server alone.
		Client: http.Client{
			Timeout:       apiTime,
			Transport:     &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}}
	if err := errors.Join(wrongServer, noToken, noRoots); err != nil {
		return nil, err
	}
	c.client = client
	return client, nil
}

// baseOf returns the URL to which the API's paths are added.
func baseOf(server string, secure bool) (string, error) {
	if !strings.Contains(server, "://") {
		server = map[bool]string{false: "http://", true: "https://"}[secure] + reachable(server)
	}
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("--server is no address of a console (not shown), expected host:port such as 127.0.0.1:8095, or " +
			"https://…")
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// readToken reads a token from a file that others must not be able to read, since the token lets them in.
func readToken(path string) (string, error) {
	content, err := smallfile.ReadSecret(path, 4096) // no token is longer
	token := strings.TrimSpace(string(content))
	if err != nil {
		return "", fmt.Errorf("--token-file %s cannot be read: %w; name a readable file with a token in it", path, err)
	}
	if token == "" {
		return "", fmt.Errorf("--token-file %s is empty, expected a token as `retry-worker token new` prints it", path)
	}
	return token, nil
}
