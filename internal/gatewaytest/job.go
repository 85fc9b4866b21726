package gatewaytest

import "time"

// DefaultTenant owns every job where multi-tenancy is off.
const DefaultTenant = "<default>"

// Job is a job as a test puts it in and as an activation hands it out.
//
// For [Engine.AddJob] only Type is needed. Variables and CustomHeaders are
// JSON objects, "{}" if empty; Retries is 3 if zero; TenantID is
// [DefaultTenant] if empty; keys that are zero are drawn; BpmnProcessID and
// ElementID have defaults. Key, Worker and Deadline are the engine's to fill.
type Job struct {
	Key                      int64
	Type                     string
	Variables                string
	CustomHeaders            string
	Retries                  int
	TenantID                 string
	ProcessInstanceKey       int64
	ElementInstanceKey       int64
	ProcessDefinitionKey     int64
	ProcessDefinitionVersion int
	BpmnProcessID            string
	ElementID                string
	Worker                   string
	Deadline                 time.Time // when the activation runs out, on the engine's clock

	owner      *job // the record behind an activated job
	activation int  // which of its activations this is
}

func (j *Job) setDefaults() {
	setIfEmpty(&j.Variables, "{}")
	setIfEmpty(&j.CustomHeaders, "{}")
	setIfEmpty(&j.TenantID, DefaultTenant)
	setIfEmpty(&j.BpmnProcessID, "process")
	setIfEmpty(&j.ElementID, "task")
	if j.Retries == 0 {
		j.Retries = 3
	}
	if j.ProcessDefinitionVersion == 0 {
		j.ProcessDefinitionVersion = 1
	}
}

func setIfEmpty(s *string, value string) {
	if *s == "" {
		*s = value
	}
}

// bytes is what the job takes in an answer, without the fields of fixed size.
func (j *Job) bytes() int {
	return len(j.Variables) + len(j.CustomHeaders) + len(j.Type) + len(j.BpmnProcessID) + len(j.ElementID)
}

// State is where a job stands in the engine.
type State uint8

// The states of a job. The last three are final; [Incident] and
// [ErrorUncaught] last until somebody resolves the incident.
const (
	Activatable   State = iota // waits for a worker
	Activated                  // a worker holds it, until its time-out
	BackingOff                 // failed, waits for its back-off to end
	Incident                   // failed with no retries left
	ErrorUncaught              // threw an error that no boundary event catches
	Completed
	ErrorThrown     // threw an error that was caught
	Cancelled       // its process instance is gone
	states      int = iota
)

var stateNames = [states]string{
	"ACTIVATABLE", "ACTIVATED", "FAILED (back-off)", "FAILED (incident)",
	"ERROR_THROWN (incident)", "COMPLETED", "ERROR_THROWN", "CANCELED",
}

// String names the state as the engine's messages do.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown state"
}

// Settled tells whether a worker has nothing more to do with the job.
func (s State) Settled() bool { return s >= Incident }

// answerable tells whether Complete, Fail and Throw are accepted: in hand, and
// also after the time-out while nobody else answered.
func (s State) answerable() bool { return s == Activatable || s == Activated }

// gone tells whether the engine knows the key no more.
func (s State) gone() bool { return s >= Completed }

// job is a job inside the engine; the engine's mutex guards it.
type job struct {
	Job
	state    State
	index    int       // place in the heap that its state implies, -1 in none
	due      time.Time // end of the activation or of the back-off
	incident int64     // key of the open incident, 0 if none
	holder   *holder   // the worker that holds it while activated
	history  *history  // nil for endless jobs: counted, not remembered
}

// holder counts what one worker holds.
type holder struct {
	held, most int
}

func (h *holder) add(n int) {
	h.held += n
	h.most = max(h.most, h.held)
}
