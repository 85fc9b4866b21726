package conformance_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// doors are kinds of doors.
type doors int

const (
	onGRPC doors = 1 << iota
	rest86
	rest88
	onREST = rest86 | rest88
	all    = onGRPC | onREST
)

// door is a protocol. Its errors have the status that gRPC gives them.
type door interface {
	name() string
	kind() doors
	// during returns the door with calls that end with ctx.
	during(ctx context.Context) door

	deploy(tenant string, files ...*pb.Resource) ([]*pb.ProcessMetadata, error)
	create(*pb.CreateProcessInstanceRequest) (*pb.CreateProcessInstanceResponse, error)
	// result creates an instance and returns its variables at its end.
	result(*pb.CreateProcessInstanceWithResultRequest) (variables string, err error)
	cancel(instance int64) error
	// touch changes nothing in an instance, and finds out so whether it runs.
	touch(instance int64) error
	activate(*pb.ActivateJobsRequest) ([]*pb.ActivatedJob, error)
	complete(job int64, variables string) error
	fail(*pb.FailJobRequest) error
	throw(job int64, code, variables string) error
	updateTimeout(job int64, timeout time.Duration) error
	updateRetries(job int64, retries int32) error
	setVariables(scope int64, variables string, local bool) error
	resolve(incident int64) error
	publish(*pb.PublishMessageRequest) (key int64, err error)
}

type grpcDoor struct {
	client pb.GatewayClient
	ctx    context.Context
}

func (*grpcDoor) name() string                      { return "gRPC" }
func (*grpcDoor) kind() doors                       { return onGRPC }
func (d *grpcDoor) during(ctx context.Context) door { return &grpcDoor{d.client, ctx} }

func (d *grpcDoor) deploy(tenant string, files ...*pb.Resource) (processes []*pb.ProcessMetadata, err error) {
	answer, err := d.client.DeployResource(d.ctx, &pb.DeployResourceRequest{TenantId: tenant, Resources: files})
	for _, deployed := range answer.GetDeployments() {
		processes = append(processes, deployed.GetProcess())
	}
	return processes, err
}

func (d *grpcDoor) create(r *pb.CreateProcessInstanceRequest) (*pb.CreateProcessInstanceResponse, error) {
	return d.client.CreateProcessInstance(d.ctx, r)
}

func (d *grpcDoor) result(r *pb.CreateProcessInstanceWithResultRequest) (string, error) {
	answer, err := d.client.CreateProcessInstanceWithResult(d.ctx, r)
	return answer.GetVariables(), err
}

func (d *grpcDoor) cancel(instance int64) error {
	_, err := d.client.CancelProcessInstance(d.ctx, &pb.CancelProcessInstanceRequest{ProcessInstanceKey: instance})
	return err
}

func (d *grpcDoor) touch(instance int64) error { return d.setVariables(instance, "{}", true) }

func (d *grpcDoor) activate(r *pb.ActivateJobsRequest) (jobs []*pb.ActivatedJob, err error) {
	stream, err := d.client.ActivateJobs(d.ctx, r)
	for err == nil {
		var answer *pb.ActivateJobsResponse
		if answer, err = stream.Recv(); err == nil {
			jobs = append(jobs, answer.GetJobs()...)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return jobs, err
}

func (d *grpcDoor) complete(job int64, variables string) error {
	_, err := d.client.CompleteJob(d.ctx, &pb.CompleteJobRequest{JobKey: job, Variables: variables})
	return err
}

func (d *grpcDoor) fail(r *pb.FailJobRequest) error {
	_, err := d.client.FailJob(d.ctx, r)
	return err
}

func (d *grpcDoor) throw(job int64, code, variables string) error {
	_, err := d.client.ThrowError(d.ctx, &pb.ThrowErrorRequest{JobKey: job, ErrorCode: code, Variables: variables})
	return err
}

func (d *grpcDoor) updateTimeout(job int64, timeout time.Duration) error {
	_, err := d.client.UpdateJobTimeout(d.ctx, &pb.UpdateJobTimeoutRequest{JobKey: job, Timeout: timeout.Milliseconds()})
	return err
}

func (d *grpcDoor) updateRetries(job int64, retries int32) error {
	_, err := d.client.UpdateJobRetries(d.ctx, &pb.UpdateJobRetriesRequest{JobKey: job, Retries: retries})
	return err
}

func (d *grpcDoor) setVariables(scope int64, variables string, local bool) error {
	_, err := d.client.SetVariables(d.ctx,
		&pb.SetVariablesRequest{ElementInstanceKey: scope, Variables: variables, Local: local})
	return err
}

func (d *grpcDoor) resolve(incident int64) error {
	_, err := d.client.ResolveIncident(d.ctx, &pb.ResolveIncidentRequest{IncidentKey: incident})
	return err
}

func (d *grpcDoor) publish(r *pb.PublishMessageRequest) (int64, error) {
	answer, err := d.client.PublishMessage(d.ctx, r)
	return answer.GetKey(), err
}

// restDoor is the REST API of one version.
type restDoor struct {
	base  string
	is    doors
	token string
	ctx   context.Context
}

func (d *restDoor) name() string {
	return map[doors]string{rest86: "REST 8.6", rest88: "REST 8.8"}[d.is]
}
func (d *restDoor) kind() doors { return d.is }

func (d *restDoor) during(ctx context.Context) door { return &restDoor{d.base, d.is, d.token, ctx} }

// object is a JSON object.
type object = map[string]any

// with adds a member to an object where it is not its type's zero value; variables are JSON text.
func with[V comparable](o object, name string, value V) object {
	var zero V
	if value == zero {
		return o
	}
	if o[name] = value; name == "variables" {
		o[name] = json.RawMessage(fmt.Sprint(value))
	}
	return o
}

// restKey is a key, a number in 8.6 and text later.
type restKey int64

func (k *restKey) UnmarshalJSON(text []byte) (err error) {
	*(*int64)(k), err = strconv.ParseInt(string(bytes.Trim(text, `"`)), 10, 64)
	return err
}

// problem is an error of the REST API.
type problem struct {
	code          int
	Status        int
	Title, Detail string
}

func (p *problem) Error() string { return fmt.Sprintf("%d %s: %s", p.code, p.Title, p.Detail) }

// GRPCStatus returns the status that gRPC gives the error.
func (p *problem) GRPCStatus() *status.Status {
	code, known := map[string]codes.Code{
		"404 NOT_FOUND": codes.NotFound, "409 INVALID_STATE": codes.FailedPrecondition,
		"409 ALREADY_EXISTS": codes.AlreadyExists, "503 RESOURCE_EXHAUSTED": codes.ResourceExhausted,
	}[fmt.Sprint(p.code, " ", p.Title)]
	switch {
	case known:
	case p.code == http.StatusBadRequest:
		code = codes.InvalidArgument
	case p.code == http.StatusGatewayTimeout:
		code = codes.DeadlineExceeded
	default:
		code = codes.Unknown
	}
	return status.New(code, p.Error())
}

// call sends an object, or nothing where that is nil, and reads what is answered by 200 into answer; where that is nil,
// 204 must be answered.
func (d *restDoor) call(method, path string, body object, answer any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	return send(d.ctx, method, d.base+"/v2/"+path, d.token, "application/json", text, answer)
}

// post is call by POST, with a path of that format.
func (d *restDoor) post(body object, answer any, path string, args ...any) error {
	return d.call(http.MethodPost, fmt.Sprintf(path, args...), body, answer)
}

func send(ctx context.Context, method, url, token, contentType string, body []byte, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if len(body) > 0 {
		request.Header.Set("Content-Type", contentType)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case answer == nil && response.StatusCode == http.StatusNoContent:
		return nil
	case answer != nil && response.StatusCode == http.StatusOK:
		return json.Unmarshal(text, answer)
	}
	p := &problem{code: response.StatusCode}
	kind := response.Header.Get("Content-Type")
	if err := json.Unmarshal(text, p); err != nil || !strings.HasPrefix(kind, "application/problem+json") ||
		p.Status != p.code || p.Title == "" {
		return fmt.Errorf("%s %s: answered %s by %s, expected a problem as the API writes it: %s",
			method, request.URL.Redacted(), response.Status, cmp.Or(kind, "nothing"), text)
	}
	return p
}

func (d *restDoor) deploy(tenant string, files ...*pb.Resource) (processes []*pb.ProcessMetadata, err error) {
	var form bytes.Buffer
	parts := multipart.NewWriter(&form) // a buffer takes everything
	for _, file := range files {
		part, _ := parts.CreateFormFile("resources", file.GetName())
		_, _ = part.Write(file.GetContent())
	}
	if tenant != "" {
		_ = parts.WriteField("tenantId", tenant)
	}
	_ = parts.Close()
	var answer struct {
		Deployments []struct {
			ProcessDefinition struct {
				ProcessDefinitionID, ResourceName, TenantID string
				ProcessDefinitionVersion                    int32
				ProcessDefinitionKey                        restKey
			}
		}
	}
	url := d.base + "/v2/deployments"
	err = send(d.ctx, http.MethodPost, url, d.token, parts.FormDataContentType(), form.Bytes(), &answer)
	for _, deployed := range answer.Deployments {
		p := deployed.ProcessDefinition
		processes = append(processes, &pb.ProcessMetadata{
			BpmnProcessId: p.ProcessDefinitionID, Version: p.ProcessDefinitionVersion, TenantId: p.TenantID,
			ProcessDefinitionKey: int64(p.ProcessDefinitionKey), ResourceName: p.ResourceName,
		})
	}
	return processes, err
}

func creation(r *pb.CreateProcessInstanceRequest) object {
	body := with(object{"processDefinitionId": r.GetBpmnProcessId()}, "variables", r.GetVariables())
	with(with(body, "tenantId", r.GetTenantId()), "processDefinitionVersion", max(r.GetVersion(), 0))
	var starts []object
	for _, i := range r.GetStartInstructions() {
		starts = append(starts, object{"elementId": i.GetElementId()})
		body["startInstructions"] = starts
	}
	return body
}

func (d *restDoor) create(r *pb.CreateProcessInstanceRequest) (*pb.CreateProcessInstanceResponse, error) {
	var answer struct {
		ProcessDefinitionID, TenantID            string
		ProcessDefinitionVersion                 int32
		ProcessDefinitionKey, ProcessInstanceKey restKey
	}
	err := d.post(creation(r), &answer, "process-instances")
	return &pb.CreateProcessInstanceResponse{
		BpmnProcessId: answer.ProcessDefinitionID, Version: answer.ProcessDefinitionVersion, TenantId: answer.TenantID,
		ProcessDefinitionKey: int64(answer.ProcessDefinitionKey), ProcessInstanceKey: int64(answer.ProcessInstanceKey),
	}, err
}

func (d *restDoor) result(r *pb.CreateProcessInstanceWithResultRequest) (string, error) {
	body := with(creation(r.GetRequest()), "requestTimeout", r.GetRequestTimeout())
	if body["awaitCompletion"] = true; r.GetFetchVariables() != nil {
		body["fetchVariables"] = r.GetFetchVariables()
	}
	var answer struct{ Variables json.RawMessage }
	err := d.post(body, &answer, "process-instances")
	return string(answer.Variables), err
}

func (d *restDoor) cancel(instance int64) error {
	return d.post(nil, nil, "process-instances/%d/cancellation", instance)
}

func (d *restDoor) touch(instance int64) error {
	return d.post(object{}, nil, "process-instances/%d/modification", instance)
}

func (d *restDoor) activate(r *pb.ActivateJobsRequest) (jobs []*pb.ActivatedJob, err error) {
	body := object{
		"type": r.GetType(), "worker": r.GetWorker(), "timeout": r.GetTimeout(),
		"maxJobsToActivate": r.GetMaxJobsToActivate(), "requestTimeout": r.GetRequestTimeout(),
	}
	if r.GetFetchVariable() != nil {
		body["fetchVariable"] = r.GetFetchVariable()
	}
	if r.GetTenantIds() != nil {
		body["tenantIds"] = r.GetTenantIds()
	}
	var answer struct {
		Jobs []struct {
			Key, JobKey, ProcessInstanceKey, ElementInstanceKey, ProcessDefinitionKey restKey
			Type, Worker, ElementID, TenantID, ProcessDefinitionID                    string
			ProcessDefinitionVersion, Retries                                         int32
			Deadline                                                                  int64
			CustomHeaders, Variables                                                  json.RawMessage
		}
	}
	err = d.post(body, &answer, "jobs/activation")
	for _, j := range answer.Jobs {
		jobs = append(jobs, &pb.ActivatedJob{
			Key: int64(cmp.Or(j.JobKey, j.Key)), Type: j.Type, Worker: j.Worker, ElementId: j.ElementID, TenantId: j.TenantID,
			ProcessInstanceKey: int64(j.ProcessInstanceKey), ElementInstanceKey: int64(j.ElementInstanceKey),
			ProcessDefinitionKey: int64(j.ProcessDefinitionKey), BpmnProcessId: j.ProcessDefinitionID,
			ProcessDefinitionVersion: j.ProcessDefinitionVersion, Retries: j.Retries, Deadline: j.Deadline,
			CustomHeaders: string(j.CustomHeaders), Variables: string(j.Variables),
		})
	}
	return jobs, err
}

func (d *restDoor) complete(job int64, variables string) error {
	return d.post(with(object{}, "variables", variables), nil, "jobs/%d/completion", job)
}

func (d *restDoor) fail(r *pb.FailJobRequest) error {
	body := with(object{"retries": r.GetRetries()}, "retryBackOff", r.GetRetryBackOff())
	with(with(body, "errorMessage", r.GetErrorMessage()), "variables", r.GetVariables())
	return d.post(body, nil, "jobs/%d/failure", r.GetJobKey())
}

func (d *restDoor) throw(job int64, code, variables string) error {
	return d.post(with(object{"errorCode": code}, "variables", variables), nil, "jobs/%d/error", job)
}

func (d *restDoor) change(job int64, changes object) error {
	return d.call(http.MethodPatch, fmt.Sprintf("jobs/%d", job), object{"changeset": changes}, nil)
}

func (d *restDoor) updateTimeout(job int64, timeout time.Duration) error {
	return d.change(job, object{"timeout": timeout.Milliseconds()})
}

func (d *restDoor) updateRetries(job int64, retries int32) error {
	return d.change(job, object{"retries": retries})
}

func (d *restDoor) setVariables(scope int64, variables string, local bool) error {
	body := with(object{"local": local}, "variables", variables)
	return d.call(http.MethodPut, fmt.Sprintf("element-instances/%d/variables", scope), body, nil)
}

func (d *restDoor) resolve(incident int64) error {
	return d.post(nil, nil, "incidents/%d/resolution", incident)
}

func (d *restDoor) publish(r *pb.PublishMessageRequest) (int64, error) {
	body := object{"name": r.GetName(), "correlationKey": r.GetCorrelationKey(), "timeToLive": r.GetTimeToLive()}
	with(with(body, "variables", r.GetVariables()), "messageId", r.GetMessageId())
	var answer struct{ MessageKey restKey }
	err := d.post(body, &answer, "messages/publication")
	return int64(answer.MessageKey), err
}
