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
	"strconv"
	"strings"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retry-worker/internal/engine"
)

const (
	// mostBody bounds a request's body, as the gRPC gateway bounds a message.
	mostBody = 4 << 20
	// headerTime and idleTime bound what a connection may take of the server.
	headerTime, idleTime = 10 * time.Second, 5 * time.Minute
	// bodyTime bounds the reading of a request, and sendTime the sending of an answer.
	bodyTime, sendTime = 30 * time.Second, 30 * time.Second
)

// ServeREST serves the REST API, version 2, until Close.
func (s *Server) ServeREST(l net.Listener) {
	mux := http.NewServeMux()
	for pattern, do := range map[string]func(*call) (any, error){
		"GET /v2/topology":                              s.topologyREST,
		"POST /v2/deployments":                          s.deployREST,
		"POST /v2/process-instances":                    s.createREST,
		"POST /v2/process-instances/{key}/cancellation": s.cancelREST,
		"POST /v2/process-instances/{key}/modification": s.modifyREST,
		"POST /v2/jobs/activation":                      s.activateREST,
		"POST /v2/jobs/{key}/completion":                s.completeREST,
		"POST /v2/jobs/{key}/failure":                   s.failREST,
		"POST /v2/jobs/{key}/error":                     s.throwREST,
		"PATCH /v2/jobs/{key}":                          s.updateREST,
		"PUT /v2/element-instances/{key}/variables":     s.variablesREST,
		"POST /v2/incidents/{key}/resolution":           s.resolveREST,
		"POST /v2/messages/publication":                 s.publishREST,
		"PUT /v2/clock":                                 s.pinREST,
		"POST /v2/clock/reset":                          func(*call) (any, error) { s.ResetTime(); return nil, nil },
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serveREST(w, r, do) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, r, http.StatusNotFound, "Not Found", "No endpoint "+r.Method+" "+r.URL.Path+" in the development engine")
	})
	s.serveHTTP(l, mux)
}

func (s *Server) serveHTTP(l net.Listener, h http.Handler) {
	server := &http.Server{Handler: h, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime}
	s.atClose(func() { _ = server.Close() })
	go func() { _ = server.Serve(l) }() // ends with Close
}

// call is a request of the REST API.
type call struct {
	*http.Request
	deadlines *http.ResponseController
	key       int64 // in its path
	numbers   bool  // keys are answered as numbers
}

// number is a key, or another number, that may come as text.
type number int64

func (n *number) UnmarshalJSON(text []byte) error {
	v, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	if err != nil {
		return fmt.Errorf("%.40s is no key", text)
	}
	*n = number(v)
	return nil
}

// told is a key as the shape tells it.
func (c *call) told(key int64) any {
	if c.numbers {
		return key
	}
	return strconv.FormatInt(key, 10)
}

// read reads the body. A member that the API does not have is refused; no body is one without members.
func (c *call) read(in any) error {
	if kind, _, _ := strings.Cut(c.Header.Get("Content-Type"), ";"); kind != "" && kind != "application/json" {
		return &problem{http.StatusUnsupportedMediaType, "Unsupported Media Type", "Content-Type '" + kind + "' is not supported."}
	}
	d := json.NewDecoder(c.Body)
	d.DisallowUnknownFields()
	err := d.Decode(in)
	_ = c.deadlines.SetReadDeadline(time.Time{}) // else it would end a poll that waits
	if err == nil && d.More() {
		err = errors.New("something follows the JSON object")
	}
	switch _, tooLarge := errors.AsType[*http.MaxBytesError](err); {
	case tooLarge:
		return &problem{http.StatusRequestEntityTooLarge, "Payload Too Large", fmt.Sprintf("The body has more than %d bytes", mostBody)}
	case err != nil && !errors.Is(err, io.EOF):
		return &problem{http.StatusBadRequest, "Bad Request", "Request property cannot be parsed: " + strings.TrimPrefix(err.Error(), "json: ")}
	}
	return nil
}

// variables returns a member as text; JSON's null is none.
func variables(raw json.RawMessage) string {
	if bytes.Equal(raw, []byte("null")) {
		return ""
	}
	return string(raw)
}

// problem is an error with its status.
type problem struct {
	status        int
	title, detail string
}

func (p *problem) Error() string { return p.detail }

func (s *Server) serveREST(w http.ResponseWriter, r *http.Request, do func(*call) (any, error)) {
	c := &call{Request: r, deadlines: http.NewResponseController(w), numbers: s.options.Shape == Shape86}
	_ = c.deadlines.SetReadDeadline(time.Now().Add(bodyTime)) // it can be set on any connection
	r.Body = http.MaxBytesReader(w, r.Body, mostBody)
	var answer any
	var err error
	if text := r.PathValue("key"); text != "" {
		if c.key, err = strconv.ParseInt(text, 10, 64); err != nil {
			err = &problem{http.StatusBadRequest, "Bad Request", fmt.Sprintf("The key %.40q in the path is no number", text)}
		}
	}
	if err == nil {
		answer, err = do(c)
	}
	_ = c.deadlines.SetWriteDeadline(time.Now().Add(sendTime))
	switch {
	case err != nil:
		s.refuseREST(w, r, err)
	case answer == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		writeJSON(w, http.StatusOK, "application/json", answer)
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

// statuses are gRPC's codes as REST tells them.
var statuses = map[codes.Code]struct {
	status int
	title  string
}{
	codes.NotFound:           {http.StatusNotFound, "NOT_FOUND"},
	codes.InvalidArgument:    {http.StatusBadRequest, "INVALID_ARGUMENT"},
	codes.FailedPrecondition: {http.StatusConflict, "INVALID_STATE"},
	codes.AlreadyExists:      {http.StatusConflict, "ALREADY_EXISTS"},
	codes.PermissionDenied:   {http.StatusForbidden, "FORBIDDEN"},
	codes.ResourceExhausted:  {http.StatusServiceUnavailable, "RESOURCE_EXHAUSTED"},
	codes.DeadlineExceeded:   {http.StatusGatewayTimeout, "DEADLINE_EXCEEDED"},
	codes.Unavailable:        {http.StatusServiceUnavailable, "UNAVAILABLE"},
}

func (s *Server) refuseREST(w http.ResponseWriter, r *http.Request, err error) {
	if p, is := errors.AsType[*problem](err); is {
		writeProblem(w, r, p.status, p.title, p.detail)
		return
	}
	told := statuses[status.Code(err)]
	if told.status == 0 {
		told.status, told.title = http.StatusInternalServerError, "INTERNAL_ERROR"
	}
	writeProblem(w, r, told.status, told.title, status.Convert(err).Message())
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
	return t, nil
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
	if err != nil {
		return nil, err
	}
	deployments := []any{}
	for _, d := range all {
		deployments = append(deployments, map[string]any{"processDefinition": map[string]any{
			"processDefinitionId": d.ProcessID, "processDefinitionVersion": d.Version, "processDefinitionKey": c.told(d.Key),
			"resourceName": d.Resource, "tenantId": tenant,
		}})
	}
	return map[string]any{"deploymentKey": c.told(key), "tenantId": tenant, "deployments": deployments}, nil
}

func (s *Server) createREST(c *call) (any, error) {
	var in struct {
		ProcessDefinitionKey     number
		ProcessDefinitionID      string `json:"processDefinitionId"`
		ProcessDefinitionVersion int32
		Variables                json.RawMessage
		TenantID                 string `json:"tenantId"`
		OperationReference       number
		StartInstructions        []struct {
			ElementID string `json:"elementId"`
		}
		AwaitCompletion bool
		FetchVariables  []string
		RequestTimeout  int64
	}
	if err := c.read(&in); err != nil {
		return nil, err
	}
	command := engine.Create{
		DefinitionKey: int64(in.ProcessDefinitionKey), ProcessID: in.ProcessDefinitionID, Version: in.ProcessDefinitionVersion,
		Tenant: in.TenantID, Variables: variables(in.Variables), Await: in.AwaitCompletion,
	}
	for _, at := range in.StartInstructions {
		command.StartAt = append(command.StartAt, at.ElementID)
	}
	i, result, err := s.create(c.Context(), command, millis(in.RequestTimeout))
	if err != nil {
		return nil, err
	}
	out := map[string]any{
		"processDefinitionId": i.ProcessID, "processDefinitionVersion": i.Version, "processDefinitionKey": c.told(i.Definition.Key),
		"processInstanceKey": c.told(i.Key), "tenantId": cmp.Or(in.TenantID, engine.DefaultTenant),
		"variables": json.RawMessage(cmp.Or(engine.Select(result, in.FetchVariables), "{}")),
	}
	if !c.numbers {
		out["tags"] = []string{}
	}
	return out, nil
}

// reference is a body of which nothing matters.
type reference struct{ OperationReference number }

// carry reads a body into in and carries a command out, of which nothing is told.
func (s *Server) carry(c *call, in any, name string, command func() engine.Command) (any, error) {
	if err := c.read(in); err != nil {
		return nil, err
	}
	return nil, s.do(c.Context(), name, command(), nil)
}

func (s *Server) cancelREST(c *call) (any, error) {
	return s.carry(c, &reference{}, "CANCEL", func() engine.Command { return engine.Cancel{Key: c.key} })
}

func (s *Server) modifyREST(c *call) (any, error) {
	var in struct {
		reference
		ActivateInstructions, MoveInstructions, TerminateInstructions []any
	}
	if err := c.read(&in); err != nil {
		return nil, err
	}
	if len(in.ActivateInstructions)+len(in.MoveInstructions)+len(in.TerminateInstructions) > 0 {
		return nil, &problem{http.StatusBadRequest, "INVALID_ARGUMENT", "The development engine modifies no instance: expected no instructions"}
	}
	return nil, s.do(c.Context(), "MODIFY", engine.Touch{Key: c.key}, nil)
}

func (s *Server) activateREST(c *call) (any, error) {
	var in struct {
		Type, Worker            string
		Timeout, RequestTimeout int64
		MaxJobsToActivate       int32
		FetchVariable           []string
		TenantIDs               []string `json:"tenantIds"`
	}
	if err := c.read(&in); err != nil {
		return nil, err
	}
	jobs, err := s.poll(c.Context(), &pb.ActivateJobsRequest{
		Type: in.Type, Worker: in.Worker, Timeout: in.Timeout, MaxJobsToActivate: in.MaxJobsToActivate, FetchVariable: in.FetchVariable,
		RequestTimeout: in.RequestTimeout, TenantIds: in.TenantIDs,
	})
	if err != nil {
		return nil, err
	}
	if c.Context().Err() != nil {
		s.giveBack(jobs)
		return nil, errStopping
	}
	out := make([]any, len(jobs))
	for i := range jobs {
		out[i] = c.job(&jobs[i])
	}
	return map[string]any{"jobs": out}, nil
}

// job is a job as the shape tells it.
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

func (s *Server) completeREST(c *call) (any, error) {
	var in struct{ Variables json.RawMessage }
	return s.carry(c, &in, "COMPLETE", func() engine.Command {
		return engine.Complete{Key: c.key, Variables: variables(in.Variables)}
	})
}

func (s *Server) failREST(c *call) (any, error) {
	var in struct {
		Retries      int32
		ErrorMessage string
		RetryBackOff int64
		Variables    json.RawMessage
	}
	return s.carry(c, &in, "FAIL", func() engine.Command {
		return engine.Fail{Key: c.key, Retries: in.Retries, BackOff: millis(in.RetryBackOff), Message: in.ErrorMessage, Variables: variables(in.Variables)}
	})
}

func (s *Server) throwREST(c *call) (any, error) {
	var in struct {
		ErrorCode, ErrorMessage string
		Variables               json.RawMessage
	}
	return s.carry(c, &in, "THROW_ERROR", func() engine.Command {
		return engine.Throw{Key: c.key, Code: in.ErrorCode, Message: in.ErrorMessage, Variables: variables(in.Variables)}
	})
}

func (s *Server) updateREST(c *call) (any, error) {
	var in struct {
		reference
		Changeset struct {
			Retries *int32
			Timeout *int64
		}
	}
	if err := c.read(&in); err != nil {
		return nil, err
	}
	if in.Changeset.Retries == nil && in.Changeset.Timeout == nil {
		return nil, &problem{http.StatusBadRequest, "INVALID_ARGUMENT", "No update data provided: at least one of retries and timeout is expected"}
	}
	if n := in.Changeset.Retries; n != nil {
		if err := s.do(c.Context(), "UPDATE", engine.UpdateRetries{Key: c.key, Retries: *n}, nil); err != nil {
			return nil, err
		}
	}
	if ms := in.Changeset.Timeout; ms != nil {
		err := s.do(c.Context(), "UPDATE", engine.UpdateTimeout{Key: c.key, Timeout: millis(*ms)}, nil)
		if status.Code(err) == codes.FailedPrecondition { // as was seen
			err = &problem{http.StatusBadRequest, "INVALID_ARGUMENT", status.Convert(err).Message()}
		}
		return nil, err
	}
	return nil, nil
}

func (s *Server) variablesREST(c *call) (any, error) {
	var in struct {
		reference
		Variables json.RawMessage
		Local     bool
	}
	if err := c.read(&in); err != nil {
		return nil, err
	}
	if text := variables(in.Variables); text == "" || text == "{}" { // as was seen
		return nil, &problem{http.StatusBadRequest, "INVALID_ARGUMENT", "No variables provided"}
	}
	return nil, s.do(c.Context(), "UPDATE", engine.SetVariables{Key: c.key, Variables: variables(in.Variables), Local: in.Local}, nil)
}

func (s *Server) resolveREST(c *call) (any, error) {
	const partition = 51 // the bits of a key below its partition's number
	if c.key>>partition != 1 {
		return nil, &problem{http.StatusServiceUnavailable, "io.camunda.zeebe.broker.client.api.PartitionNotFoundException",
			fmt.Sprintf("Expected to execute the command on partition %d, but there is none with that number", c.key>>partition)}
	}
	return s.carry(c, &reference{}, "RESOLVE", func() engine.Command { return engine.Resolve{Key: c.key} })
}

func (s *Server) publishREST(c *call) (any, error) {
	var in struct {
		Name, CorrelationKey string
		MessageID            string `json:"messageId"`
		TimeToLive           int64
		Variables            json.RawMessage
		TenantID             string `json:"tenantId"`
	}
	if err := c.read(&in); err != nil {
		return nil, err
	}
	key, tenant, err := s.publish(c.Context(), engine.Publish{
		Name: in.Name, Key: in.CorrelationKey, ID: in.MessageID, Tenant: in.TenantID, TimeToLive: millis(in.TimeToLive), Variables: variables(in.Variables),
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"messageKey": c.told(key), "tenantId": tenant}, nil
}

func (s *Server) pinREST(c *call) (any, error) {
	var in struct{ Timestamp int64 }
	if err := c.read(&in); err != nil {
		return nil, err
	}
	if in.Timestamp <= 0 {
		return nil, &problem{http.StatusBadRequest, "INVALID_ARGUMENT", "The value for timestamp must be greater than zero"}
	}
	s.PinTime(time.UnixMilli(in.Timestamp))
	return nil, nil
}
