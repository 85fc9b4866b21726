package gatewaytest

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"path"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Process is a deployed process definition.
type Process struct {
	BpmnProcessID string
	Version       int // from 1 on; the same content keeps its version
	Key           int64
	ResourceName  string

	content []byte
}

// Instance is a process instance.
type Instance struct {
	Key       int64
	Process   Process
	Variables string // a JSON object
	TenantID  string
}

// instance is a process instance inside the engine.
type instance struct {
	variables map[string]json.RawMessage
	cancelled bool
}

// Resource is a file to deploy.
type Resource struct {
	Name    string // ends in .bpmn
	Content []byte
}

// join puts a job into its process instance, and starts that if need be with
// the job's variables.
func (e *Engine) join(j *job) {
	if e.instances[j.ProcessInstanceKey] == nil {
		e.instances[j.ProcessInstanceKey] = &instance{variables: decoded(j.Variables)}
	}
}

// setInProcess lays variables upon those of the job's process instance, as
// where a task has no output mapping.
func (e *Engine) setInProcess(j *job, variables string) {
	if i := e.instances[j.ProcessInstanceKey]; i != nil {
		maps.Copy(i.variables, decoded(variables))
	}
}

// setInInstance sets variables in the scope of a process instance; false if
// there is none by that key.
func (e *Engine) setInInstance(r SetVariablesRequest) bool {
	i := e.instances[r.ElementInstanceKey]
	if i == nil || i.cancelled {
		return false
	}
	maps.Copy(i.variables, decoded(r.Variables))
	return true
}

// ProcessVariables are the variables a process instance shows, by name; nil
// where no such instance was started.
func (e *Engine) ProcessVariables(instance int64) map[string]json.RawMessage {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := e.instances[instance]; i != nil {
		return maps.Clone(i.variables)
	}
	return nil
}

// Deploy deploys BPMN files, all or none: an executable process with new
// content gets the next version. INVALID_ARGUMENT for what is no such file.
func (e *Engine) Deploy(ctx context.Context, caller string, files []Resource) (deployed []Process, err error) {
	c := Call{Method: DeployResource, Caller: caller}
	err = e.other(ctx, c, nil, func() error {
		found, err := processesOf(files)
		for i := range found {
			deployed = append(deployed, e.deploy(found[i]))
		}
		return err
	})
	return deployed, err
}

func (e *Engine) deploy(p Process) Process {
	versions := e.processes[p.BpmnProcessID]
	if n := len(versions); n > 0 && bytes.Equal(versions[n-1].content, p.content) {
		return versions[n-1]
	}
	e.nextKey++
	p.Key, p.Version = e.nextKey, len(versions)+1
	e.processes[p.BpmnProcessID] = append(versions, p)
	return p
}

// processesOf reads the ids of all executable processes in the files.
func processesOf(files []Resource) ([]Process, error) {
	if len(files) == 0 {
		return nil, status.Error(codes.InvalidArgument, "no resource to deploy")
	}
	var found []Process
	for _, f := range files {
		ids, err := processIDs(f)
		if err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "resource %q: %v", f.Name, err)
		}
		for _, id := range ids {
			found = append(found, Process{BpmnProcessID: id, ResourceName: f.Name, content: f.Content})
		}
	}
	return found, nil
}

func processIDs(f Resource) (ids []string, err error) {
	if path.Ext(f.Name) != ".bpmn" {
		return nil, errors.New("the stub deploys .bpmn files only")
	}
	for d := xml.NewDecoder(bytes.NewReader(f.Content)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && len(ids) > 0 {
			return ids, nil
		}
		if errors.Is(err, io.EOF) {
			return nil, errors.New("no executable process in it")
		}
		if err != nil {
			return nil, err
		}
		if id := executable(token); id != "" {
			ids = append(ids, id)
		}
	}
}

// executable is the id of the executable process that a token opens, or "".
func executable(token xml.Token) (id string) {
	start, ok := token.(xml.StartElement)
	if !ok || start.Name.Local != "process" {
		return ""
	}
	runs := false
	for _, a := range start.Attr {
		switch a.Name.Local {
		case "id":
			id = a.Value
		case "isExecutable":
			runs = a.Value == "true"
		}
	}
	if !runs {
		return ""
	}
	return id
}

// has tells whether the process's file has an element with that id.
func (p *Process) has(id string) bool {
	for d := xml.NewDecoder(bytes.NewReader(p.content)); ; {
		token, err := d.Token()
		if err != nil {
			return false // the end: it was read when it was deployed
		}
		start, _ := token.(xml.StartElement)
		for _, a := range start.Attr {
			if a.Name.Local == "id" && a.Value == id {
				return true
			}
		}
	}
}

// CreateRequest starts a process instance: by definition key, or by process id
// and version (-1 or 0: the latest). StartElements are ids of elements to begin
// at; the stub only looks whether the process has them.
type CreateRequest struct {
	StartElements []string
	DefinitionKey int64
	BpmnProcessID string
	Version       int
	Variables     string
	TenantID      string
	Caller        string
}

// Create starts a process instance with the jobs [EngineOptions].Jobs gives it.
// Errors: NOT_FOUND for a process that was not deployed, INVALID_ARGUMENT for
// variables that are no JSON object and for an element the process has not.
func (e *Engine) Create(ctx context.Context, r CreateRequest) (started Instance, err error) {
	c := Call{Method: CreateProcessInstance, Caller: r.Caller}
	err = e.other(ctx, c, nil, func() error {
		if err := checkVariables(r.Variables); err != nil {
			return err
		}
		p, ok := e.process(r)
		if !ok {
			return status.Errorf(codes.NotFound, "no process %q, version %d, key %d", r.BpmnProcessID, r.Version, r.DefinitionKey)
		}
		for _, id := range r.StartElements {
			if !p.has(id) {
				return status.Errorf(codes.InvalidArgument, "process %q has no element %q to begin at", p.BpmnProcessID, id)
			}
		}
		e.nextKey++
		started = Instance{Key: e.nextKey, Process: p, Variables: r.Variables, TenantID: r.TenantID}
		setIfEmpty(&started.Variables, "{}")
		setIfEmpty(&started.TenantID, DefaultTenant)
		e.instances[started.Key] = &instance{variables: decoded(r.Variables)}
		return nil
	})
	if started.Key != 0 && e.options.Jobs != nil {
		e.start(started)
	}
	return started, err
}

func (e *Engine) start(i Instance) {
	jobs := e.options.Jobs(i)
	for n := range jobs {
		j := &jobs[n]
		j.ProcessInstanceKey, j.TenantID = i.Key, i.TenantID
		j.ProcessDefinitionKey, j.ProcessDefinitionVersion = i.Process.Key, i.Process.Version
		j.BpmnProcessID = i.Process.BpmnProcessID
		setIfEmpty(&j.Variables, i.Variables)
	}
	e.AddJobs(jobs...)
}

func (e *Engine) process(r CreateRequest) (Process, bool) {
	if r.DefinitionKey == 0 {
		versions := e.processes[r.BpmnProcessID]
		if r.Version <= 0 {
			r.Version = len(versions)
		}
		if r.Version == 0 || r.Version > len(versions) {
			return Process{}, false
		}
		return versions[r.Version-1], true
	}
	for _, versions := range e.processes {
		i := slices.IndexFunc(versions, func(p Process) bool { return p.Key == r.DefinitionKey })
		if i >= 0 {
			return versions[i], true
		}
	}
	return Process{}, false
}

// Cancel ends a process instance and its jobs. NOT_FOUND where none runs by
// that key.
func (e *Engine) Cancel(ctx context.Context, caller string, key int64) error {
	c := Call{Method: CancelProcessInstance, Caller: caller}
	return e.other(ctx, c, nil, func() error {
		i := e.instances[key]
		if i == nil || i.cancelled {
			return status.Errorf(codes.NotFound, "no process instance with key %d", key)
		}
		i.cancelled = true
		for _, j := range e.jobs {
			if j.ProcessInstanceKey == key && !j.state.gone() {
				e.move(j, Cancelled)
			}
		}
		return nil
	})
}

// Version is what Topology reports; the call is counted and may meet faults.
func (e *Engine) Version(ctx context.Context, caller string) (string, error) {
	return e.options.Version, e.other(ctx, Call{Method: Topology, Caller: caller}, nil, func() error { return nil })
}
