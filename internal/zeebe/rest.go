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

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"retry-worker/internal/worker"
)

const (
	// maxConnections to the REST API; each running call uses one.
	maxConnections = 200
	// maxIdle is shorter than the servers' own limit, which would close a connection under a command.
	maxIdle = 10 * time.Second
)

// rest is a connection to the REST API of engines from 8.6 on.
type rest struct {
	grpc.ClientConnInterface // its NewStream is not called

	base      string // URL that ends in v2/
	userAgent string
	http      *http.Client
}

func newREST(o *Options) (connection, error) {
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
	return &rest{
		base: base.JoinPath("v2").String() + "/", userAgent: o.userAgent(),
		// Redirects are not followed: command and token are for the engine alone. The caller's context bounds each
		// call.
		http: &http.Client{Transport: transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}, nil
}

// Close ends idle connections.
func (c *rest) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Invoke implements grpc.ClientConnInterface: it sends the REST request that corresponds to the command.
func (c *rest) Invoke(ctx context.Context, command string, in, out any, _ ...grpc.CallOption) error {
	switch in := in.(type) {
	case *pb.CompleteJobRequest:
		return c.send(ctx, http.MethodPost, job(in.JobKey)+"/completion", body{"variables": object(in.Variables)}, nil)
	case *pb.ThrowErrorRequest:
		return c.send(ctx, http.MethodPost, job(in.JobKey)+"/error",
			body{"errorCode": in.ErrorCode, "errorMessage": in.ErrorMessage, "variables": object(in.Variables)}, nil)
	case *pb.FailJobRequest:
		return c.send(ctx, http.MethodPost, job(in.JobKey)+"/failure",
			body{"retries": in.Retries, "retryBackOff": in.RetryBackOff, "errorMessage": in.ErrorMessage}, nil)
	case *pb.UpdateJobTimeoutRequest:
		return c.send(ctx, http.MethodPatch, job(in.JobKey), body{"changeset": body{"timeout": in.Timeout}}, nil)
	case *pb.SetVariablesRequest:
		return c.setVariables(ctx, in)
	case *pb.TopologyRequest:
		return c.topology(ctx, out.(*pb.TopologyResponse))
	case *pb.DeployResourceRequest:
		return c.deploy(ctx, in, out.(*pb.DeployResourceResponse))
	case *pb.CreateProcessInstanceRequest:
		return c.create(ctx, in, out.(*pb.CreateProcessInstanceResponse))
	case *pb.PublishMessageRequest:
		return c.send(ctx, http.MethodPost, "messages/publication",
			body{"name": in.Name, "correlationKey": in.CorrelationKey, "timeToLive": in.TimeToLive}, &struct{}{})
	}
	return status.Errorf(codes.Unimplemented, "the REST API is not asked for %s", command)
}

// key is a 64-bit key: a number in 8.6, text in later versions.
type key int64

func (k *key) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	*k = key(n)
	return err
}

// send sends in as JSON and decodes the answer into out, which may be nil.
func (c *rest) send(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return &restError{http.StatusBadRequest, "", fmt.Errorf("encode the request: %w", err)}
	}
	return c.post(ctx, method, path, "application/json", body, out)
}

// post is send for a body that is already encoded. Without an out only status 204 is success, so that a proxy's page
// does not count.
func (c *rest) post(ctx context.Context, method, path, contentType string, body []byte, out any) error {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return &restError{0, "", err}
	}
	shown, _ := metadata.FromOutgoingContext(ctx)
	request.Header = http.Header{"Authorization": shown["authorization"], "Content-Type": {contentType},
		"Accept": {"application/json, application/problem+json"}, "User-Agent": {c.userAgent}}
	response, err := c.http.Do(request)
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

func (c *rest) activate(ctx context.Context, r *pb.ActivateJobsRequest) ([]worker.Job, error) {
	var out struct {
		Jobs []struct {
			Key, JobKey                            key // its name depends on the version
			ProcessInstanceKey, ElementInstanceKey key
			Type, TenantID                         string
			Retries                                int32
			CustomHeaders, Variables               json.RawMessage
			Deadline                               key
		}
	}
	if err := c.send(ctx, http.MethodPost, "jobs/activation", r, &out); err != nil { // the fields' names are the same
		return nil, err
	}
	if out.Jobs == nil {
		return nil, &restError{0, "", errors.New("answered 200 without a list of jobs, not as the engine does")}
	}
	jobs := make([]worker.Job, len(out.Jobs))
	for i := range out.Jobs {
		j := &out.Jobs[i]
		key := int64(cmp.Or(j.JobKey, j.Key))
		if key == 0 {
			return nil, &restError{0, "", errors.New("answered 200 with a job that has no jobKey, not as the engine does")}
		}
		jobs[i] = worker.Job{
			Key: key, ProcessInstanceKey: int64(j.ProcessInstanceKey), ElementInstanceKey: int64(j.ElementInstanceKey),
			Type: j.Type, TenantID: j.TenantID, Retries: j.Retries,
			Headers: string(j.CustomHeaders), Variables: string(j.Variables), LockedUntil: int64(j.Deadline),
		}
	}
	return jobs, nil
}

func job(key int64) string { return "jobs/" + strconv.FormatInt(key, 10) }

// body of a request.
type body map[string]any

// object returns variables as JSON; empty ones become {}.
func object(variables string) json.RawMessage { return json.RawMessage(cmp.Or(variables, "{}")) }

// setVariables sets variables. This API refuses an empty set. An empty modification shows as well whether the process
// instance runs (tried on 8.6.0).
func (c *rest) setVariables(ctx context.Context, r *pb.SetVariablesRequest) error {
	instance := strconv.FormatInt(r.ElementInstanceKey, 10)
	if r.Local && r.Variables == "{}" {
		return c.send(ctx, http.MethodPost, "process-instances/"+instance+"/modification", struct{}{}, nil)
	}
	return c.send(ctx, http.MethodPut, "element-instances/"+instance+"/variables",
		body{"variables": object(r.Variables), "local": r.Local}, nil)
}

func (c *rest) topology(ctx context.Context, to *pb.TopologyResponse) error {
	var out struct {
		GatewayVersion  string
		PartitionsCount int32
		Brokers         []struct{ Partitions []struct{ Role string } }
	}
	err := c.post(ctx, http.MethodGet, "topology", "application/json", nil, &out)
	to.GatewayVersion, to.PartitionsCount = out.GatewayVersion, out.PartitionsCount
	for _, b := range out.Brokers {
		broker := &pb.BrokerInfo{}
		for _, p := range b.Partitions {
			role := pb.Partition_PartitionBrokerRole_value[strings.ToUpper(p.Role)]
			broker.Partitions = append(broker.Partitions, &pb.Partition{Role: pb.Partition_PartitionBrokerRole(role)})
		}
		to.Brokers = append(to.Brokers, broker)
	}
	return err
}

func (c *rest) deploy(ctx context.Context, r *pb.DeployResourceRequest, to *pb.DeployResourceResponse) error {
	var form bytes.Buffer
	parts := multipart.NewWriter(&form) // writing to a buffer cannot fail
	for _, model := range r.Resources {
		part, _ := parts.CreateFormFile("resources", model.Name)
		_, _ = part.Write(model.Content)
	}
	if r.TenantId != "" {
		_ = parts.WriteField("tenantId", r.TenantId)
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
	err := c.post(ctx, http.MethodPost, "deployments", parts.FormDataContentType(), form.Bytes(), &out)
	for _, d := range out.Deployments {
		if p := d.ProcessDefinition; p != nil {
			to.Deployments = append(to.Deployments, &pb.Deployment{Metadata: &pb.Deployment_Process{Process: &pb.ProcessMetadata{
				BpmnProcessId: p.ProcessDefinitionID, Version: p.ProcessDefinitionVersion,
				ProcessDefinitionKey: int64(p.ProcessDefinitionKey)}}})
		}
	}
	return err
}

func (c *rest) create(ctx context.Context, r *pb.CreateProcessInstanceRequest, to *pb.CreateProcessInstanceResponse) error {
	var out struct{ ProcessInstanceKey key }
	err := c.send(ctx, http.MethodPost, "process-instances",
		body{"processDefinitionId": r.BpmnProcessId, "variables": object(r.Variables)}, &out)
	to.ProcessInstanceKey = int64(out.ProcessInstanceKey)
	return err
}

// maxProblem bounds the detail of an error answer, in bytes; the engine has the same limit.
const maxProblem = 10_000

// errTooLarge is gRPC's error for a message above the receive limit.
var errTooLarge = status.Errorf(codes.ResourceExhausted, "received message larger than max (%d)", maxReceiveBytes)

// restError is an error of the REST API.
type restError struct {
	status int    // 0: no usable answer
	title  string // of the engine's problem; empty if the engine did not answer
	err    error
}

func (e *restError) Error() string { return e.err.Error() }
func (e *restError) Unwrap() error { return e.err }

// GRPCStatus returns the status that gRPC would have for the error, so that callers treat both protocols alike.
func (e *restError) GRPCStatus() *status.Status { return status.New(e.code(), e.Error()) }

// codeOf holds the codes of the statuses that always mean the same. Others are those of proxies: a 404, a redirection.
var codeOf = map[int]codes.Code{
	http.StatusBadRequest: codes.InvalidArgument, http.StatusRequestEntityTooLarge: codes.InvalidArgument,
	http.StatusUnauthorized: codes.Unauthenticated, http.StatusForbidden: codes.PermissionDenied,
	http.StatusMethodNotAllowed: codes.Unimplemented, http.StatusNotImplemented: codes.Unimplemented,
	http.StatusConflict: codes.FailedPrecondition, http.StatusTooManyRequests: codes.ResourceExhausted,
	http.StatusInternalServerError: codes.Internal, http.StatusGatewayTimeout: codes.DeadlineExceeded,
}

func (e *restError) code() codes.Code {
	switch {
	case errors.Is(e.err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(e.err, context.Canceled):
		return codes.Canceled
	case e.status == http.StatusNotFound && e.title == "NOT_FOUND":
		return codes.NotFound
	case e.status == http.StatusConflict && e.title == "ALREADY_EXISTS":
		return codes.AlreadyExists
	case e.status == http.StatusServiceUnavailable && e.title == busy,
		e.status == http.StatusInternalServerError && strings.Contains(e.Error(), busy):
		return codes.ResourceExhausted
	}
	return cmp.Or(codeOf[e.status], codes.Unavailable)
}

// busy is the engine's name for backpressure.
const busy = "RESOURCE_EXHAUSTED"

// problem reads an answer that is not a success, whatever its content type.
func problem(r *http.Response, text []byte) error {
	var said struct{ Title, Detail string }
	if err := json.Unmarshal(text, &said); err != nil || said.Title == "" {
		return &restError{r.StatusCode, "", fmt.Errorf("%s answered %s with %s, not as the engine does", r.Request.URL,
			r.Status, cmp.Or(r.Header.Get("Content-Type"), "nothing"))}
	}
	detail := said.Detail[:min(len(said.Detail), maxProblem)]
	return &restError{r.StatusCode, said.Title, fmt.Errorf("answered %d %s: %s", r.StatusCode, said.Title, detail)}
}

// transportError returns the error of a call without a complete answer.
func transportError(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		err = fmt.Errorf("%w (%w)", err, ended)
	}
	return &restError{0, "", err}
}
