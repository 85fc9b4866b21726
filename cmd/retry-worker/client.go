package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"retry-worker/internal/api"
	"retry-worker/internal/config"
	"retry-worker/internal/smallfile"
)

const (
	// apiTime bounds one request to the API.
	apiTime = 40 * time.Second
	// tokenVariable holds the token to show to the API. No flag does: flags stand in the list of processes.
	tokenVariable = "RETRY_WORKER_TOKEN"
)

// speaksToAPI begins the help of the groups that ask a worker.
const speaksToAPI = "Speaks to the API of a running worker. Where that has a tokens file, it shows the token in " +
	tokenVariable + ", or the\none in --token-file. "

// serverFlags say where the API is and who asks.
type serverFlags struct {
	server, tokenFile, caFile string
	made                      *api.Client
}

func (f *serverFlags) register(flags *pflag.FlagSet) {
	f.registerAs(flags, "where the worker's console listens: host:port or https://…; left out: RETRY_WORKER_HTTP_ADDR")
}

// askInstead is what --server says where a command otherwise reads the journal.
const askInstead = "worker to ask: host:port or https://…; left out: RETRY_WORKER_DATABASE_URL is read"

func (f *serverFlags) registerAs(flags *pflag.FlagSet, server string) {
	flags.StringVar(&f.server, "server", "", server)
	flags.StringVar(&f.caFile, "ca-file", "", "PEM file to trust for https:// instead of the system's authorities")
	flags.StringVar(&f.tokenFile, "token-file", "",
		"file that holds the token to show; left out: the token in "+tokenVariable+", if there is one")
}

// client is for the server that flags and environment name; made once. Its errors are wrong use.
func (f *serverFlags) client() (*api.Client, error) {
	if f.made != nil {
		return f.made, nil
	}
	c, err := f.newClient()
	if err != nil {
		return nil, &usageError{err}
	}
	f.made = c
	return c, nil
}

func (f *serverFlags) newClient() (*api.Client, error) {
	addr, secure, token, err := config.Client()
	if err != nil {
		return nil, err
	}
	c := &api.Client{
		Base: "http://" + reachable(addr), Token: token, Flag: "server", TokenFrom: tokenVariable + " or --token-file",
	}
	if secure {
		c.Base = "https://" + reachable(addr)
	}
	if f.server != "" {
		if c.Base, err = f.base(); err != nil {
			return nil, err
		}
	}
	source := tokenVariable
	if f.tokenFile != "" {
		source = "--token-file " + f.tokenFile
		if c.Token, err = readToken(f.tokenFile); err != nil {
			return nil, err
		}
	}
	if strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, fmt.Errorf("%s holds no token (not shown), expected one as `retry-worker token new` prints it", source)
	}
	// Straight to the worker, whatever proxy the environment names for the world outside; and a token is shown to nobody
	// whom an answer points to.
	roots, err := smallfile.Authorities("--ca-file", f.caFile)
	c.Client = http.Client{
		Timeout:       apiTime,
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, err
}

// base returns the URL that the API's paths are added to.
func (f *serverFlags) base() (string, error) {
	text := f.server
	if !strings.Contains(text, "://") {
		text = "http://" + reachable(text)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("--server is no address of a console (not shown), expected host:port such as 127.0.0.1:8095, or " +
			"https://…")
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// readToken reads a token from a file that others must not read: who can is in.
func readToken(path string) (string, error) {
	content, err := smallfile.ReadSecret(path, 4096) // as long as a token can be
	switch token := strings.TrimSpace(string(content)); {
	case err != nil:
		return "", fmt.Errorf("--token-file %s cannot be read: %w; name a readable file with a token in it", path, err)
	case token == "":
		return "", fmt.Errorf("--token-file %s is empty, expected a token as `retry-worker token new` prints it", path)
	default:
		return token, nil
	}
}

// mayPass reports whether asking again later can help: nobody answered, or the answer was that it cannot be known now.
func mayPass(err error) bool {
	refused, is := errors.AsType[*api.Refused](err)
	return !is || refused.Status >= http.StatusInternalServerError || refused.Status == http.StatusTooManyRequests
}

// inFlags names the API's fields by the flags that give them.
var inFlags = strings.NewReplacer("forceRetry", "--force", "submissionDeadline", "--deadline", "perMinute", "--per-minute", " fresh ", " --fresh ")

// asked returns the answer of the API as T, and as it came.
func asked[T any](ctx context.Context, c *cli, path string, body any) (*T, json.RawMessage, error) {
	client, err := c.server.client()
	if err != nil {
		return nil, nil, err
	}
	answer, text, err := api.AskFor[T](ctx, client, path, body)
	if refused, is := errors.AsType[*api.Refused](err); is {
		const most = 1000
		refused.Failure.Error = inertLine(refused.Failure.Error, most)
		refused.Message = inFlags.Replace(inertLine(refused.Message, most))
	}
	return answer, text, err
}

// show prints the answer to a request: the body itself with -o json, otherwise what print makes of it.
func show[T any](ctx context.Context, c *cli, path string, body any, print func(*T)) error {
	answer, text, err := asked[T](ctx, c, path, body)
	if err != nil {
		return err
	}
	return c.print(text, func() { print(answer) })
}

// about completes a command about what its argument names, which the API has below path: it sends what body makes to the
// address behind the name, or asks for it where body is nil, and prints the answer.
func about[T any](
	c *cli, cmd *cobra.Command, path, address string, body func() (any, error), print func(*T),
) *cobra.Command {
	c.server.register(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var sent any
		if body != nil {
			var err error
			if sent, err = body(); err != nil {
				return wrongUse(err)
			}
		}
		return show(cmd.Context(), c, path+url.PathEscape(args[0])+address, sent, print)
	}
	return cmd
}

// inertLine returns s in one line of at most so many characters, with nothing in it that a terminal acts on: white space is
// one blank, other characters that do not show stand as \u escapes.
func inertLine(s string, most int) string {
	var b strings.Builder
	n, blank := 0, false
	for _, r := range s {
		if r == ' ' || r == '\t' || r == '\n' || r == '\r' || r == 0x2028 || r == 0x2029 || r == 0xa0 {
			blank = n > 0
			continue
		}
		text := string(r)
		if !strconv.IsPrint(r) {
			text = fmt.Sprintf(`\u%04x`, r)
		}
		if blank {
			text, blank = " "+text, false
		}
		if n += len([]rune(text)); n > most {
			return cutLine(b.String(), most)
		}
		b.WriteString(text)
	}
	return b.String()
}

// cutLine returns the beginning of a line that goes on.
func cutLine(line string, most int) string {
	runes := []rune(line)
	return string(runes[:min(len(runes), max(0, most-1))]) + "…"
}
