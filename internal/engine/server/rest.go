package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retry-worker/internal/engine"
)

const (
	// mostBody is the longest body of a request, the same as the longest message of the gRPC gateway.
	mostBody = 4 << 20
	// headerTime bounds the reading of a header, and idleTime an idle connection.
	headerTime, idleTime = 10 * time.Second, 5 * time.Minute
	// bodyTime bounds the reading of a body, and sendTime the sending of an answer.
	bodyTime, sendTime = 30 * time.Second, 30 * time.Second
)

// REST returns a handler of the REST API, version 2. It turns most requests into gRPC's.
func (s *Server) REST() http.Handler {
	mux := http.NewServeMux()
	for pattern, r := range s.routes() {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, request *http.Request) { s.serveREST(w, request, r) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, r, http.StatusNotFound, "Not Found", "No endpoint "+r.Method+" "+r.URL.Path+" in the development engine")
	})
	return mux
}

// ServeREST serves the REST API until Close.
func (s *Server) ServeREST(l net.Listener) { s.serveHTTP(l, s.REST()) }

func (s *Server) serveHTTP(l net.Listener, h http.Handler) {
	server := &http.Server{Handler: h, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime}
	s.atClose(func() { _ = server.Close() })
	go func() { _ = server.Serve(l) }() // ends with Close
}

// route is the handler of a kind of request.
type route struct {
	members string // allowed in the body; others are refused
	do      func(*call) (any, error)
}

// call is a request of the REST API.
type call struct {
	*http.Request
	body
	key     int64 // from the path
	numbers bool  // answer with keys as numbers
}

// body holds the members of all kinds of request.
type body struct {
	ProcessDefinitionKey     number
	ProcessDefinitionID      string `json:"processDefinitionId"`
	ProcessDefinitionVersion int32
	Variables                json.RawMessage
	TenantID                 string   `json:"tenantId"`
	TenantIDs                []string `json:"tenantIds"`
	StartInstructions        []struct {
		ElementID string `json:"elementId"`
	}
	AwaitCompletion, Local                                        bool
	FetchVariable, FetchVariables                                 []string
	Type, Worker, ErrorCode, ErrorMessage, Name, CorrelationKey   string
	MessageID                                                     string `json:"messageId"`
	Timeout, RequestTimeout, RetryBackOff, TimeToLive, Timestamp  int64
	MaxJobsToActivate, Retries                                    int32
	ActivateInstructions, MoveInstructions, TerminateInstructions []any
	Changeset                                                     struct {
		Retries *int32
		Timeout *int64
	}
}

// number is a key, as a number or as text.
type number int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(text []byte) error {
	v, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	if err != nil {
		return fmt.Errorf("%.40s is no key", text)
	}
	*n = number(v)
	return nil
}

// told returns a key in the form of the shape.
func (c *call) told(key int64) any {
	if c.numbers {
		return key
	}
	return strconv.FormatInt(key, 10)
}

// variables returns the member as text; empty for null.
func (c *call) variables() string {
	if bytes.Equal(c.Variables, []byte("null")) {
		return ""
	}
	return string(c.Variables)
}

// problem is an error with an HTTP status.
type problem struct {
	status        int
	title, detail string
}

func (p *problem) Error() string { return p.detail }

func invalid(format string, args ...any) error {
	return &problem{http.StatusBadRequest, "INVALID_ARGUMENT", fmt.Sprintf(format, args...)}
}

// read reads the path and the body; an empty body has no members.
func (c *call) read(members string) (err error) {
	if text := c.PathValue("key"); text != "" {
		if c.key, err = strconv.ParseInt(text, 10, 64); err != nil {
			return invalid("The key %.40q in the path is no number", text)
		}
	}
	kind, _, _ := strings.Cut(c.Header.Get("Content-Type"), ";")
	if kind == "multipart/form-data" {
		return nil
	}
	if kind != "" && kind != "application/json" {
		return &problem{http.StatusUnsupportedMediaType, "Unsupported Media Type", "Content-Type '" + kind + "' is not supported."}
	}
	text, err := io.ReadAll(c.Body)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return &problem{http.StatusRequestEntityTooLarge, "Payload Too Large", fmt.Sprintf("The body has more than %d bytes", mostBody)}
	}
	if err != nil || len(bytes.TrimSpace(text)) == 0 {
		return err
	}
	var all map[string]json.RawMessage
	err = json.Unmarshal(text, &all)
	for name := range all {
		if !slices.Contains(strings.Fields(members), name) {
			err = fmt.Errorf("[%.40s] is unknown", name)
		}
	}
	if err == nil {
		err = json.Unmarshal(text, &c.body)
	}
	if err != nil {
		return &problem{http.StatusBadRequest, "Bad Request", "Request property cannot be parsed: " + strings.TrimPrefix(err.Error(), "json: ")}
	}
	return nil
}

func (s *Server) serveREST(w http.ResponseWriter, r *http.Request, to route) {
	c := &call{Request: r, numbers: s.options.Shape == Shape86}
	deadlines := http.NewResponseController(w)
	_ = deadlines.SetReadDeadline(time.Now().Add(bodyTime)) // every connection supports it
	r.Body = http.MaxBytesReader(w, r.Body, mostBody)
	err := c.read(to.members)
	_ = deadlines.SetReadDeadline(time.Time{}) // so that a waiting poll does not end
	var answer any
	if err == nil {
		answer, err = to.do(c)
	}
	_ = deadlines.SetWriteDeadline(time.Now().Add(sendTime))
	switch {
	case err != nil:
		refuseREST(w, r, err)
	case answer == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		_ = writeJSON(w, http.StatusOK, "application/json", answer)
	}
}

func writeJSON(w http.ResponseWriter, code int, kind string, answer any) error {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(code)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(answer)
}

func writeProblem(w http.ResponseWriter, r *http.Request, code int, title, detail string) {
	_ = writeJSON(w, code, "application/problem+json",
		map[string]any{"type": "about:blank", "title": title, "status": code, "detail": detail, "instance": r.URL.Path})
}

// statuses maps gRPC's codes to HTTP's.
var statuses = map[codes.Code]problem{
	codes.NotFound:           {http.StatusNotFound, "NOT_FOUND", ""},
	codes.InvalidArgument:    {http.StatusBadRequest, "INVALID_ARGUMENT", ""},
	codes.FailedPrecondition: {http.StatusConflict, "INVALID_STATE", ""},
	codes.AlreadyExists:      {http.StatusConflict, "ALREADY_EXISTS", ""},
	codes.PermissionDenied:   {http.StatusForbidden, "FORBIDDEN", ""},
	codes.Unauthenticated:    {http.StatusUnauthorized, "UNAUTHORIZED", ""},
	codes.ResourceExhausted:  {http.StatusServiceUnavailable, "RESOURCE_EXHAUSTED", ""},
	codes.DeadlineExceeded:   {http.StatusGatewayTimeout, "DEADLINE_EXCEEDED", ""},
	codes.Unavailable:        {http.StatusServiceUnavailable, "UNAVAILABLE", ""},
}

func refuseREST(w http.ResponseWriter, r *http.Request, err error) {
	p, is := errors.AsType[*problem](err)
	if !is {
		told := statuses[status.Code(err)]
		p = &problem{cmp.Or(told.status, http.StatusInternalServerError), cmp.Or(told.title, "INTERNAL_ERROR"), status.Convert(err).Message()}
	}
	writeProblem(w, r, p.status, p.title, p.detail)
}

// routes returns the API's routes by pattern.
func (s *Server) routes() map[string]route {
	const reference = " operationReference"
	command := func(members, name string, command func(*call) engine.Command) route {
		return route{members, func(c *call) (any, error) { return nil, s.do(c.Context(), name, command(c), nil) }}
	}
	return map[string]route{
		"GET /v2/topology":     {"", s.topologyREST},
		"POST /v2/deployments": {"", s.deployREST},
		"POST /v2/process-instances": {"processDefinitionKey processDefinitionId processDefinitionVersion variables tenantId startInstructions " +
			"awaitCompletion fetchVariables requestTimeout" + reference, s.createREST},
		"POST /v2/process-instances/{key}/cancellation": command(reference, "CANCEL", func(c *call) engine.Command { return engine.Cancel{Key: c.key} }),
		"POST /v2/process-instances/{key}/modification": {"activateInstructions moveInstructions terminateInstructions" + reference, s.modifyREST},
		"POST /v2/jobs/activation":                      {"type worker timeout requestTimeout maxJobsToActivate fetchVariable tenantIds", s.activateREST},
		"POST /v2/jobs/{key}/completion": command("variables", "COMPLETE", func(c *call) engine.Command {
			return engine.Complete{Key: c.key, Variables: c.variables()}
		}),
		"POST /v2/jobs/{key}/failure": command("retries errorMessage retryBackOff variables", "FAIL", func(c *call) engine.Command {
			return engine.Fail{Key: c.key, Retries: c.Retries, BackOff: millis(c.RetryBackOff), Message: c.ErrorMessage, Variables: c.variables()}
		}),
		"POST /v2/jobs/{key}/error": command("errorCode errorMessage variables", "THROW_ERROR", func(c *call) engine.Command {
			return engine.Throw{Key: c.key, Code: c.ErrorCode, Message: c.ErrorMessage, Variables: c.variables()}
		}),
		"PATCH /v2/jobs/{key}":                      {"changeset" + reference, s.updateREST},
		"PUT /v2/element-instances/{key}/variables": {"variables local" + reference, s.variablesREST},
		"POST /v2/incidents/{key}/resolution":       {reference, s.resolveREST},
		"POST /v2/messages/publication":             {"name correlationKey messageId timeToLive variables tenantId", s.publishREST},
		"PUT /v2/clock":                             {"timestamp", s.pinREST},
		"POST /v2/clock/reset":                      {"", func(*call) (any, error) { s.ResetTime(); return nil, nil }},
	}
}

func (s *Server) topologyREST(c *call) (any, error) {
	t := map[string]any{
		"brokers": []any{map[string]any{
			"nodeId": 0, "host": host, "port": 0, "version": s.version(),
			"partitions": []any{map[string]any{"partitionId": 1, "role": "leader", "health": "healthy"}},
		}},
		"clusterSize": 1, "partitionsCount": 1, "replicationFactor": 1, "gatewayVersion": s.version(),
	}
	if !c.numbers {
		t["lastCompletedChangeId"], t["clusterId"] = "-1", host
	}
	return t, s.topology(c.Context())
}

func (s *Server) deployREST(c *call) (any, error) {
	if err := c.ParseMultipartForm(mostBody); err != nil {
		return nil, &problem{http.StatusBadRequest, "Bad Request", "Required part 'resources' is not present: " + err.Error()}
	}
	var resources []engine.Resource
	for _, file := range c.MultipartForm.File["resources"] {
		content, err := file.Open()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(content)
		if err := errors.Join(err, content.Close()); err != nil {
			return nil, err
		}
		resources = append(resources, engine.Resource{Name: file.Filename, Content: string(text)})
	}
	key, tenant, all, err := s.deploy(c.Context(), resources, c.FormValue("tenantId"))
	deployments := []any{}
	for _, d := range all {
		deployments = append(deployments, map[string]any{"processDefinition": map[string]any{
			"processDefinitionId": d.ProcessID, "processDefinitionVersion": d.Version, "processDefinitionKey": c.told(d.Key),
			"resourceName": d.Resource, "tenantId": tenant,
		}})
	}
	return map[string]any{"deploymentKey": c.told(key), "tenantId": tenant, "deployments": deployments}, err
}

func (s *Server) createREST(c *call) (any, error) {
	command := engine.Create{
		DefinitionKey: int64(c.ProcessDefinitionKey), ProcessID: c.ProcessDefinitionID, Version: cmp.Or(c.ProcessDefinitionVersion, engine.Latest),
		Tenant: c.TenantID, Variables: c.variables(), Await: c.AwaitCompletion,
	}
	for _, at := range c.StartInstructions {
		command.StartAt = append(command.StartAt, at.ElementID)
	}
	i, result, err := s.create(c.Context(), command, millis(c.RequestTimeout))
	out := map[string]any{
		"processDefinitionId": i.ProcessID, "processDefinitionVersion": i.Version, "processDefinitionKey": c.told(i.Definition.Key),
		"processInstanceKey": c.told(i.Key), "tenantId": i.Tenant,
		"variables": json.RawMessage(cmp.Or(engine.Select(result, c.FetchVariables), "{}")),
	}
	if !c.numbers {
		out["tags"] = []string{}
	}
	return out, err
}

func (s *Server) modifyREST(c *call) (any, error) {
	if len(c.ActivateInstructions)+len(c.MoveInstructions)+len(c.TerminateInstructions) > 0 {
		return nil, invalid("The development engine modifies no instance: expected no instructions")
	}
	return nil, s.do(c.Context(), "MODIFY", engine.Touch{Key: c.key}, nil)
}

func (s *Server) activateREST(c *call) (any, error) {
	jobs, err := s.poll(c.Context(), &pb.ActivateJobsRequest{
		Type: c.Type, Worker: c.Worker, Timeout: c.Timeout, MaxJobsToActivate: c.MaxJobsToActivate, FetchVariable: c.FetchVariable,
		RequestTimeout: c.RequestTimeout, TenantIds: c.TenantIDs,
	})
	if err == nil && c.Context().Err() != nil {
		s.giveBack(jobs)
		err = errStopping // nobody reads the answer
	}
	out := make([]any, len(jobs))
	for i := range jobs {
		out[i] = c.job(&jobs[i])
	}
	return map[string]any{"jobs": out}, err
}

// job returns a job in the form of the shape.
func (c *call) job(j *engine.Job) any {
	told := map[string]any{
		"type": j.Type, "processDefinitionId": j.ProcessID, "processDefinitionVersion": j.Version, "elementId": j.ElementID,
		"customHeaders": json.RawMessage(j.Headers), "worker": j.Worker, "retries": j.Retries, "deadline": j.Deadline,
		"variables": json.RawMessage(j.Variables), "tenantId": j.Tenant, "processInstanceKey": c.told(j.InstanceKey),
		"processDefinitionKey": c.told(j.Definition.Key), "elementInstanceKey": c.told(j.ElementInstanceKey),
	}
	if c.numbers {
		told["key"] = j.Key
		return told
	}
	told["jobKey"], told["rootProcessInstanceKey"] = c.told(j.Key), c.told(j.InstanceKey)
	told["kind"], told["listenerEventType"], told["tags"] = "BPMN_ELEMENT", "UNSPECIFIED", []string{}
	return told
}

func (s *Server) updateREST(c *call) (any, error) {
	retries, timeout := c.Changeset.Retries, c.Changeset.Timeout
	if retries == nil && timeout == nil {
		return nil, invalid("No update data provided: at least one of retries and timeout is expected")
	}
	if retries != nil {
		if err := s.do(c.Context(), "UPDATE", engine.UpdateRetries{Key: c.key, Retries: *retries}, nil); err != nil || timeout == nil {
			return nil, err
		}
	}
	err := s.do(c.Context(), "UPDATE", engine.UpdateTimeout{Key: c.key, Timeout: millis(*timeout)}, nil)
	if status.Code(err) == codes.FailedPrecondition { // as observed on Zeebe
		err = invalid("%s", status.Convert(err).Message())
	}
	return nil, err
}

func (s *Server) variablesREST(c *call) (any, error) {
	if text := c.variables(); text == "" || text == "{}" { // as observed on Zeebe
		return nil, invalid("No variables provided")
	}
	return nil, s.do(c.Context(), "UPDATE", engine.SetVariables{Key: c.key, Variables: c.variables(), Local: c.Local}, nil)
}

func (s *Server) resolveREST(c *call) (any, error) {
	const partition = 51 // the bits of a key below its partition's number
	if c.key>>partition != 1 {
		return nil, &problem{http.StatusServiceUnavailable, "io.camunda.zeebe.broker.client.api.PartitionNotFoundException",
			fmt.Sprintf("Expected to execute the command on partition %d, but there is none with that number", c.key>>partition)}
	}
	return nil, s.do(c.Context(), "RESOLVE", engine.Resolve{Key: c.key}, nil)
}

func (s *Server) publishREST(c *call) (any, error) {
	key, tenant, err := s.publish(c.Context(), engine.Publish{
		Name: c.Name, Key: c.CorrelationKey, ID: c.MessageID, Tenant: c.TenantID, TimeToLive: millis(c.TimeToLive), Variables: c.variables(),
	})
	return map[string]any{"messageKey": c.told(key), "tenantId": tenant}, err
}

func (s *Server) pinREST(c *call) (any, error) {
	if c.Timestamp <= 0 {
		return nil, invalid("The value for timestamp must be greater than zero")
	}
	s.PinTime(time.UnixMilli(c.Timestamp))
	return nil, nil
}
