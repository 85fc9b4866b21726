package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"retry-worker/internal/api"
	"retry-worker/internal/config"
)

const (
	// apiTime bounds one request to the API.
	apiTime = 40 * time.Second
	// maxAnswerBytes of one answer: a page of the longest errors there can be has less.
	maxAnswerBytes = 64 << 20
	// tokenVariable holds the token to show to the API. No flag does: flags stand in the list of processes.
	tokenVariable = "RETRY_WORKER_TOKEN"
)

// serverFlags say where the API is and who asks.
type serverFlags struct{ server, tokenFile, caFile string }

func (f *serverFlags) register(flags *pflag.FlagSet) {
	f.registerAs(flags, "where the worker's console listens: host:port or https://…; left out: RETRY_WORKER_HTTP_ADDR")
}

// registerInstead lets a command that reads the journal ask a worker.
func (f *serverFlags) registerInstead(flags *pflag.FlagSet) {
	f.registerAs(flags, "worker to ask: host:port or https://…; left out: RETRY_WORKER_DATABASE_URL is read")
}

func (f *serverFlags) registerAs(flags *pflag.FlagSet, server string) {
	flags.StringVar(&f.server, "server", "", server)
	flags.StringVar(&f.caFile, "ca-file", "", "PEM file to trust for https:// instead of the system's authorities")
	flags.StringVar(&f.tokenFile, "token-file", "", "file that holds the token to show; left out: the token in "+tokenVariable+", if there is one")
}

// apiClient asks a worker's API.
type apiClient struct {
	base, token string
	http        http.Client
}

// client is for the server that flags and environment name. Its errors are wrong use.
func (f *serverFlags) client() (*apiClient, error) {
	addr, secure, token, err := config.Client()
	if err != nil {
		return nil, &usageError{err}
	}
	c := &apiClient{base: "http://" + reachable(addr), token: token}
	if secure {
		c.base = "https://" + reachable(addr)
	}
	if f.server != "" {
		if c.base, err = baseOf(f.server); err != nil {
			return nil, &usageError{err}
		}
	}
	source := tokenVariable
	if f.tokenFile != "" {
		source = "--token-file " + f.tokenFile
		if c.token, err = readToken(f.tokenFile); err != nil {
			return nil, &usageError{err}
		}
	}
	if strings.ContainsFunc(c.token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, &usageError{fmt.Errorf("%s holds no token (not shown), expected one as `retry-worker token new` prints it", source)}
	}
	// Straight to the worker, whatever proxy the environment names for the world outside; and a token is shown to nobody
	// whom an answer points to.
	trust, err := f.authorities()
	if err != nil {
		return nil, &usageError{err}
	}
	c.http = http.Client{Timeout: apiTime, Transport: &http.Transport{TLSClientConfig: trust}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	return c, nil
}

// authorities to trust.
func (f *serverFlags) authorities() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.caFile == "" {
		return c, nil
	}
	text, _, err := readStart(f.caFile, 1<<20)
	if failed, is := errors.AsType[*fs.PathError](err); is {
		err = failed.Err // without the path, which stands in the line already
	}
	if err != nil {
		return nil, fmt.Errorf("--ca-file %s cannot be read: %w; name a readable PEM file", f.caFile, err)
	}
	if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--ca-file %s holds no PEM certificate, expected one or more", f.caFile)
	}
	return c, nil
}

// baseOf is the URL that the API's paths are added to.
func baseOf(server string) (string, error) {
	text := server
	if !strings.Contains(text, "://") {
		text = "http://" + reachable(text)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("--server is no address of a console (not shown), expected host:port such as 127.0.0.1:8095, or https://…")
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// readToken reads a token from a file that others must not read: who can is in.
func readToken(path string) (string, error) {
	const others = 0o007
	content, mode, err := readStart(path, 4096) // as long as a token can be
	if failed, is := errors.AsType[*fs.PathError](err); is {
		err = failed.Err // without the path, which stands in the line already
	}
	switch token := strings.TrimSpace(string(content)); {
	case err != nil:
		return "", fmt.Errorf("--token-file %s cannot be read: %w; name a readable file with a token in it", path, err)
	case mode.Perm()&others != 0:
		return "", fmt.Errorf("--token-file %s has mode %04o, expected 0600: everybody on this machine can read or change it; `chmod 600` it", path, mode.Perm())
	case token == "":
		return "", fmt.Errorf("--token-file %s is empty, expected a token as `retry-worker token new` prints it", path)
	default:
		return token, nil
	}
}

// readStart is the beginning of a file, at most so many bytes, and the file's mode.
func readStart(path string, most int64) ([]byte, fs.FileMode, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = file.Close() }() // read only
	info, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	content, err := io.ReadAll(io.LimitReader(file, most))
	return content, info.Mode(), err
}

// ask sends a request and returns the answer's body, a JSON object in one line in which nothing acts on a terminal. body
// nil asks by GET.
func (c *apiClient) ask(ctx context.Context, path string, body any) ([]byte, error) {
	request, err := c.request(ctx, path, body)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.base, err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		if failed, is := errors.AsType[*url.Error](err); is {
			err = failed.Err // without method and URL
		}
		return nil, c.unanswered(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w; ask again", c.base, err)
	}
	return c.answer(response.StatusCode, text)
}

// unanswered says why nobody was asked.
func (c *apiClient) unanswered(err error) error {
	if wrong, is := errors.AsType[*tls.CertificateVerificationError](err); is {
		return fmt.Errorf("the certificate of %s is not to be trusted: %w; name its authority by --ca-file, or by --server the name that it stands for", c.base, wrong.Err)
	}
	return fmt.Errorf("no console answers at %s: %w; start `retry-worker serve`, or say by --server where it listens", c.base, err)
}

// request to the API, which shows the token.
func (c *apiClient) request(ctx context.Context, path string, body any) (*http.Request, error) {
	method, content := http.MethodGet, []byte(nil)
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return nil, err
		}
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+"/api/v1"+path, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	return r, nil
}

// answer is what came back, or what was refused.
func (c *apiClient) answer(status int, text []byte) ([]byte, error) {
	var line bytes.Buffer
	if len(text) > maxAnswerBytes || json.Compact(&line, text) != nil || line.Len() == 0 || line.Bytes()[0] != '{' {
		return nil, c.foreign(fmt.Errorf("HTTP %d", status))
	}
	if status == http.StatusOK || status == http.StatusCreated {
		return api.Inert(line.Bytes()), nil
	}
	var refused struct{ Error, Message string }
	if json.Unmarshal(text, &refused) != nil || refused.Error == "" {
		return nil, c.foreign(fmt.Errorf("HTTP %d", status))
	}
	hint := ""
	if status == http.StatusUnauthorized {
		hint = " (the token comes from " + tokenVariable + " or --token-file)"
	}
	const most = 1000
	return nil, &refusedError{status, fmt.Sprintf("%s: %s%s", inertLine(refused.Error, most), inFlags.Replace(inertLine(refused.Message, most)), hint)}
}

// inFlags names the API's fields by the flags that give them.
var inFlags = strings.NewReplacer("forceRetry", "--force", "perMinute", "--per-minute", " fresh ", " --fresh ")

// refusedError is what the API says no with.
type refusedError struct {
	status int
	line   string
}

func (e *refusedError) Error() string { return e.line }

// mayPass reports whether asking again later can help: nobody answered, or the answer was that it cannot be known now.
func mayPass(err error) bool {
	refused, is := errors.AsType[*refusedError](err)
	return !is || refused.status >= http.StatusInternalServerError || refused.status == http.StatusTooManyRequests
}

// asked is the answer of a request as T, and as it came.
func asked[T any](ctx context.Context, c *apiClient, path string, body any) (*T, []byte, error) {
	text, err := c.ask(ctx, path, body)
	if err != nil {
		return nil, nil, err
	}
	var answer T
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, nil, c.foreign(err)
	}
	return &answer, text, nil
}

// show prints the answer to a request: the body itself with -o json, otherwise what print makes of it.
func show[T any](ctx context.Context, c *cli, client *apiClient, path string, body any, print func(*T)) error {
	answer, text, err := asked[T](ctx, client, path, body)
	switch {
	case err != nil:
		return err
	case c.json():
		fmt.Fprintf(c.out, "%s\n", text)
	default:
		print(answer)
	}
	return nil
}

// foreign says that something else than a retry-worker answered.
func (c *apiClient) foreign(why error) error {
	return fmt.Errorf("the answer of %s is not that of a retry-worker's API: %w; check --server", c.base, why)
}

// inertLine is s in one line of at most so many characters, with nothing in it that a terminal acts on: white space is one
// blank, other characters that do not show stand as \u escapes.
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

// cutLine is the beginning of a line that goes on.
func cutLine(line string, most int) string {
	runes := []rune(line)
	return string(runes[:min(len(runes), max(0, most-1))]) + "…"
}
