package zeebe

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"retry-worker/internal/worker"
)

const (
	// maxConnections to the REST API; a call under way has one for itself.
	maxConnections = 200
	// maxIdle of a connection is shorter than that of the servers, which would close it under a command.
	maxIdle = 10 * time.Second
)

// restGateway speaks the REST API that engines have since 8.6.
type restGateway struct {
	base      string // URL, with the slash after v2
	userAgent string
	http      *http.Client
	tokens    *tokenSource
}

func newREST(o *Options, tokens *tokenSource) (*restGateway, error) {
	config, err := o.tlsConfig()
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(o.RESTAddress)
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("engine address %q: expected http://HOST:PORT or https://… (%s)",
			o.RESTAddress, o.setting())
	}
	transport := &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		DialContext:     (&net.Dialer{Timeout: connectTimeout, KeepAlive: o.KeepAlive}).DialContext,
		TLSClientConfig: config, TLSHandshakeTimeout: connectTimeout,
		MaxConnsPerHost: maxConnections, MaxIdleConnsPerHost: maxConnections, IdleConnTimeout: maxIdle,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if o.Dialer != nil {
		transport.DialContext = func(ctx context.Context, _, address string) (net.Conn, error) {
			return o.Dialer(ctx, address)
		}
	}
	return &restGateway{
		base: base.JoinPath("v2").String() + "/", userAgent: o.UserAgent, tokens: tokens,
		// Nobody is followed: a command is for the engine, and so is the token. The caller's context bounds each call.
		http: &http.Client{Transport: transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}, nil
}

func (g *restGateway) close() error {
	g.http.CloseIdleConnections()
	return nil
}

// key of 64 bits: a number in 8.6, text in later versions.
type key int64

func (k *key) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	*k = key(n)
	return err
}

// call sends in as JSON and reads the answer into out, which may be nil.
func (g *restGateway) call(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return &restError{http.StatusBadRequest, "", fmt.Errorf("encode the request: %w", err)}
	}
	return g.send(ctx, method, path, "application/json", body, out)
}

// send does what call does, with a body as it is.
func (g *restGateway) send(ctx context.Context, method, path, contentType string, body []byte, out any) error {
	request, err := http.NewRequestWithContext(ctx, method, g.base+path, bytes.NewReader(body))
	if err != nil {
		return &restError{0, "", err}
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Accept", "application/json, application/problem+json")
	request.Header.Set("User-Agent", g.userAgent)
	return g.tokens.call(ctx, func(ctx context.Context) error {
		shown, _ := metadata.FromOutgoingContext(ctx)
		request.Header["Authorization"] = shown["authorization"]
		request.Body, _ = request.GetBody() // it may be sent twice; a reader of bytes can always be had anew
		return g.do(ctx, request, out)
	})
}

// do sends a request and reads the answer. A command without one to read succeeds with 204 alone: what a proxy says
// instead of the engine must not count.
func (g *restGateway) do(ctx context.Context, request *http.Request, out any) error {
	response, err := g.http.Do(request)
	if err != nil {
		return transportError(ctx, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxReceiveBytes+1))
	switch {
	case err != nil:
		return transportError(ctx, fmt.Errorf("read the answer %s: %w", response.Status, err))
	case len(text) > maxReceiveBytes:
		return errTooLarge
	case out == nil && response.StatusCode == http.StatusNoContent:
		return nil
	case out == nil || response.StatusCode != http.StatusOK:
		return problem(response, text)
	}
	if err := json.Unmarshal(text, out); err != nil {
		return &restError{0, "", fmt.Errorf("answered 200 with %s that is not the engine's: %w",
			cmp.Or(response.Header.Get("Content-Type"), "something"), err)}
	}
	return nil
}

// restJob is a job; its keys' names and its token depend on the version.
type restJob struct {
	Key                key             `json:"key"`
	JobKey             key             `json:"jobKey"`
	ProcessInstanceKey key             `json:"processInstanceKey"`
	ElementInstanceKey key             `json:"elementInstanceKey"`
	Type               string          `json:"type"`
	TenantID           string          `json:"tenantId"`
	Retries            int32           `json:"retries"`
	CustomHeaders      json.RawMessage `json:"customHeaders"`
	Variables          json.RawMessage `json:"variables"`
	Deadline           key             `json:"deadline"`
}

func (g *restGateway) activate(ctx context.Context, r *worker.ActivateRequest) ([]worker.Job, error) {
	in := struct {
		Type              string   `json:"type"`
		Worker            string   `json:"worker"`
		Timeout           int64    `json:"timeout"`
		MaxJobsToActivate int      `json:"maxJobsToActivate"`
		FetchVariable     []string `json:"fetchVariable,omitempty"`
		RequestTimeout    int64    `json:"requestTimeout"`
		TenantIDs         []string `json:"tenantIds,omitempty"`
	}{
		r.JobType, r.Worker, r.JobTimeout.Milliseconds(), r.MaxJobs, r.Variables, r.PollTimeout.Milliseconds(), r.TenantIDs,
	}
	var out struct{ Jobs []restJob }
	if err := g.call(ctx, http.MethodPost, "jobs/activation", in, &out); err != nil {
		return nil, err
	}
	jobs := make([]worker.Job, len(out.Jobs))
	for i := range out.Jobs {
		j := &out.Jobs[i]
		jobs[i] = worker.Job{
			Key:                int64(cmp.Or(j.JobKey, j.Key)),
			ProcessInstanceKey: int64(j.ProcessInstanceKey), ElementInstanceKey: int64(j.ElementInstanceKey),
			Type: j.Type, TenantID: j.TenantID, Retries: j.Retries,
			Headers: string(j.CustomHeaders), Variables: string(j.Variables),
			LockedUntil: int64(j.Deadline),
		}
	}
	return jobs, nil
}

// command answers a job.
type command struct {
	Variables    json.RawMessage `json:"variables,omitempty"`
	Retries      *int32          `json:"retries,omitempty"`
	RetryBackOff int64           `json:"retryBackOff,omitempty"`
	ErrorCode    string          `json:"errorCode,omitempty"`
	ErrorMessage string          `json:"errorMessage,omitempty"`
	Changeset    *changeset      `json:"changeset,omitempty"`
}

type changeset struct {
	Timeout int64 `json:"timeout"`
}

func (g *restGateway) answer(ctx context.Context, j *worker.Job, verb string, c command) error {
	return g.call(ctx, http.MethodPost, "jobs/"+strconv.FormatInt(j.Key, 10)+"/"+verb, c, nil)
}

func (g *restGateway) complete(ctx context.Context, j *worker.Job, variables string) error {
	return g.answer(ctx, j, "completion", command{Variables: json.RawMessage(variables)})
}

func (g *restGateway) throw(ctx context.Context, j *worker.Job, e *worker.BPMNError) error {
	return g.answer(ctx, j, "error",
		command{ErrorCode: e.Code, ErrorMessage: e.Message, Variables: json.RawMessage(e.Variables)})
}

func (g *restGateway) fail(ctx context.Context, j *worker.Job, f *worker.Failure) error {
	return g.answer(ctx, j, "failure",
		command{Retries: &f.Retries, RetryBackOff: f.Backoff.Milliseconds(), ErrorMessage: f.Message})
}

func (g *restGateway) setTimeout(ctx context.Context, j *worker.Job, long time.Duration) error {
	return g.call(ctx, http.MethodPatch, "jobs/"+strconv.FormatInt(j.Key, 10),
		command{Changeset: &changeset{long.Milliseconds()}}, nil)
}

func (g *restGateway) setVariables(ctx context.Context, elementInstanceKey int64, variables string) error {
	in := struct {
		Variables json.RawMessage `json:"variables"`
		Local     bool            `json:"local"`
	}{Variables: json.RawMessage(variables)}
	path := "element-instances/" + strconv.FormatInt(elementInstanceKey, 10) + "/variables"
	return g.call(ctx, http.MethodPut, path, in, nil)
}

// touch implements gateway: this API refuses to set no variables, and takes a modification of nothing (tried on 8.6.0).
func (g *restGateway) touch(ctx context.Context, processInstanceKey int64) error {
	return g.call(ctx, http.MethodPost, "process-instances/"+strconv.FormatInt(processInstanceKey, 10)+"/modification",
		struct{}{}, nil)
}

func (g *restGateway) topology(ctx context.Context) (Topology, error) {
	var out struct {
		GatewayVersion                     string
		PartitionsCount, ReplicationFactor int32
		Brokers                            []struct{ Partitions []struct{ Role string } }
	}
	err := g.send(ctx, http.MethodGet, "topology", "application/json", nil, &out)
	t := Topology{
		GatewayVersion: out.GatewayVersion, Brokers: int32(len(out.Brokers)),
		Partitions: out.PartitionsCount, ReplicationFactor: out.ReplicationFactor,
	}
	for _, b := range out.Brokers {
		for _, p := range b.Partitions {
			if p.Role == "leader" {
				t.Leaders++
			}
		}
	}
	return t, err
}

func (g *restGateway) deploy(ctx context.Context, name string, content []byte, tenant string) ([]Deployment, error) {
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	part, _ := parts.CreateFormFile("resources", name) // a buffer takes everything
	_, _ = part.Write(content)
	if tenant != "" {
		_ = parts.WriteField("tenantId", tenant)
	}
	_ = parts.Close()
	var out struct {
		Deployments []struct {
			ProcessDefinition *struct {
				ProcessDefinitionID      string
				ProcessDefinitionVersion int32
				ProcessDefinitionKey     key
			}
		}
	}
	err := g.send(ctx, http.MethodPost, "deployments", parts.FormDataContentType(), form.Bytes(), &out)
	var all []Deployment
	for _, d := range out.Deployments {
		if p := d.ProcessDefinition; p != nil {
			all = append(all, Deployment{p.ProcessDefinitionID, p.ProcessDefinitionVersion, int64(p.ProcessDefinitionKey)})
		}
	}
	return all, err
}

func (g *restGateway) create(ctx context.Context, processID, variables string) (int64, error) {
	in := struct {
		ProcessDefinitionID string          `json:"processDefinitionId"`
		Variables           json.RawMessage `json:"variables,omitempty"`
	}{processID, json.RawMessage(variables)}
	var out struct{ ProcessInstanceKey key }
	err := g.call(ctx, http.MethodPost, "process-instances", in, &out)
	return int64(out.ProcessInstanceKey), err
}

func (g *restGateway) publish(ctx context.Context, name, correlationKey string, life time.Duration) error {
	in := struct {
		Name           string `json:"name"`
		CorrelationKey string `json:"correlationKey"`
		TimeToLive     int64  `json:"timeToLive"`
	}{name, correlationKey, life.Milliseconds()}
	return g.call(ctx, http.MethodPost, "messages/publication", in, &struct{}{})
}

// maxProblem bytes of what is told of an answer's detail; the engine cuts its own at as many.
const maxProblem = 10_000

// errTooLarge says what gRPC says of a message above the receive limit.
var errTooLarge = status.Errorf(codes.ResourceExhausted, "received message larger than max (%d)", maxReceiveBytes)

// restError is an error of the REST API.
type restError struct {
	status int    // 0: no answer, or none that can be understood
	title  string // of the engine's problem; empty where somebody else answered
	err    error
}

func (e *restError) Error() string { return e.err.Error() }
func (e *restError) Unwrap() error { return e.err }

// GRPCStatus returns the error as gRPC would have told it, so that both protocols are read alike.
func (e *restError) GRPCStatus() *status.Status { return status.New(e.code(), e.Error()) }

func (e *restError) code() codes.Code {
	switch {
	case errors.Is(e.err, context.DeadlineExceeded), e.status == http.StatusGatewayTimeout:
		return codes.DeadlineExceeded
	case errors.Is(e.err, context.Canceled):
		return codes.Canceled
	case e.status == http.StatusNotFound && e.title == "NOT_FOUND":
		return codes.NotFound
	case e.status == http.StatusConflict && e.title == "ALREADY_EXISTS":
		return codes.AlreadyExists
	case e.status == http.StatusConflict:
		return codes.FailedPrecondition
	case e.status == http.StatusTooManyRequests, e.status == http.StatusServiceUnavailable && e.title == busy,
		e.status == http.StatusInternalServerError && strings.Contains(e.Error(), busy):
		return codes.ResourceExhausted
	case e.status == http.StatusBadRequest, e.status == http.StatusRequestEntityTooLarge:
		return codes.InvalidArgument
	case e.status == http.StatusUnauthorized:
		return codes.Unauthenticated
	case e.status == http.StatusForbidden:
		return codes.PermissionDenied
	case e.status == http.StatusMethodNotAllowed, e.status == http.StatusNotImplemented:
		return codes.Unimplemented
	case e.status == http.StatusInternalServerError:
		return codes.Internal
	default: // another 503, and what is not the engine's: a proxy's 404, a redirection
		return codes.Unavailable
	}
}

// busy is how the engine names backpressure.
const busy = "RESOURCE_EXHAUSTED"

// problem reads an answer that is no success, whatever its content type says.
func problem(r *http.Response, text []byte) error {
	var said struct{ Title, Detail string }
	if err := json.Unmarshal(text, &said); err != nil || said.Title == "" {
		return &restError{r.StatusCode, "", fmt.Errorf("%s answered %s with %s, not as the engine does", r.Request.URL,
			r.Status, cmp.Or(r.Header.Get("Content-Type"), "nothing"))}
	}
	detail := said.Detail[:min(len(said.Detail), maxProblem)]
	return &restError{r.StatusCode, said.Title, fmt.Errorf("answered %d %s: %s", r.StatusCode, said.Title, detail)}
}

// transportError returns the error of a call that was not answered as a whole.
func transportError(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		err = fmt.Errorf("%w (%w)", err, ended)
	}
	return &restError{0, "", err}
}
