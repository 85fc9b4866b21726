package engine

// Event is one thing that happened, in the form of Zeebe's exported records. A [Core]'s state is the fold of its
// events.
type Event struct {
	Position   int64  `json:"position"`
	Timestamp  int64  `json:"timestamp"` // milliseconds of the engine's clock
	Key        int64  `json:"key"`
	RecordType string `json:"recordType"`
	ValueType  string `json:"valueType"`
	Intent     string `json:"intent"`
	Value      Value  `json:"value"`
}

// Value describes the subject of an event; unused fields are empty.
type Value struct {
	ProcessInstanceKey   int64   `json:"processInstanceKey,omitempty"`
	ElementInstanceKey   int64   `json:"elementInstanceKey,omitempty"`
	ProcessDefinitionKey int64   `json:"processDefinitionKey,omitempty"`
	BPMNProcessID        string  `json:"bpmnProcessId,omitempty"`
	Version              int32   `json:"version,omitempty"`
	TenantID             string  `json:"tenantId,omitempty"`
	ElementID            string  `json:"elementId,omitempty"`
	ElementType          string  `json:"bpmnElementType,omitempty"`
	ResourceName         string  `json:"resourceName,omitempty"`
	Resource             string  `json:"resource,omitempty"`
	Awaited              bool    `json:"awaited,omitempty"` // somebody waits for the result
	Name                 string  `json:"name,omitempty"`    // of a variable or a message
	Value                string  `json:"value,omitempty"`   // JSON
	ScopeKey             int64   `json:"scopeKey,omitempty"`
	Variables            string  `json:"variables,omitempty"` // a JSON object
	Type                 string  `json:"type,omitempty"`
	Worker               string  `json:"worker,omitempty"`
	Retries              int32   `json:"retries,omitempty"`
	Deadline             int64   `json:"deadline,omitempty"`      // milliseconds; end of a job's lock or a message's life
	RecurringTime        int64   `json:"recurringTime,omitempty"` // milliseconds; end of a job's back-off
	ErrorType            string  `json:"errorType,omitempty"`
	ErrorCode            string  `json:"errorCode,omitempty"`
	ErrorMessage         string  `json:"errorMessage,omitempty"`
	JobKeys              []int64 `json:"jobKeys,omitempty"`
	JobKey               int64   `json:"jobKey,omitempty"`
	Resume               string  `json:"resume,omitempty"`  // what resolving an incident does; see [incident]
	DueDate              int64   `json:"dueDate,omitempty"` // milliseconds
	CorrelationKey       string  `json:"correlationKey,omitempty"`
	MessageKey           int64   `json:"messageKey,omitempty"`
	MessageID            string  `json:"messageId,omitempty"`
	TimeToLive           int64   `json:"timeToLive,omitempty"` // milliseconds
}

// The types of events and their intents.
const (
	deploymentType          = "DEPLOYMENT"
	processType             = "PROCESS"
	instanceType            = "PROCESS_INSTANCE"
	resultType              = "PROCESS_INSTANCE_RESULT"
	variableType            = "VARIABLE"
	jobType                 = "JOB"
	batchType               = "JOB_BATCH"
	timerType               = "TIMER"
	incidentType            = "INCIDENT"
	messageType             = "MESSAGE"
	subscriptionType        = "PROCESS_MESSAGE_SUBSCRIPTION"
	created                 = "CREATED"
	updated                 = "UPDATED"
	elementActivated        = "ELEMENT_ACTIVATED"
	elementCompleted        = "ELEMENT_COMPLETED"
	elementTerminated       = "ELEMENT_TERMINATED"
	activated               = "ACTIVATED"
	completed               = "COMPLETED"
	failed                  = "FAILED"
	errorThrown             = "ERROR_THROWN"
	timedOut                = "TIMED_OUT"
	timeoutUpdated          = "TIMEOUT_UPDATED"
	retriesUpdated          = "RETRIES_UPDATED"
	canceled                = "CANCELED"
	recurred                = "RECURRED_AFTER_BACKOFF"
	triggered               = "TRIGGERED"
	resolved                = "RESOLVED"
	published               = "PUBLISHED"
	expired                 = "EXPIRED"
	correlated              = "CORRELATED"
	deleted                 = "DELETED"
	eventRecord             = "EVENT"
	firstKey          int64 = 1 << 51 // of partition 1
)

// Result returns an awaited instance's variables at its end; is reports whether the event holds them.
func (e *Event) Result() (instance int64, variables string, is bool) {
	return e.Key, e.Value.Variables, e.ValueType == resultType
}

// Size returns roughly how many bytes the event takes in memory.
func (e *Event) Size() int {
	v := &e.Value
	const fixed = 600
	return fixed + len(v.Value) + len(v.Variables) + len(v.Resource) + len(v.ErrorMessage) + 8*len(v.JobKeys)
}
