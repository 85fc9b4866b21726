package gatewaytest

// Method is one RPC of the gateway protocol.
type Method uint8

// The RPCs the stub serves. Every other one answers UNIMPLEMENTED and is not
// counted.
const (
	// AnyMethod stands for all of them in a [Fault]; no call has it.
	AnyMethod Method = iota
	ActivateJobs
	CompleteJob
	FailJob
	ThrowError
	SetVariables
	UpdateJobTimeout
	UpdateJobRetries
	Topology
	DeployResource
	CreateProcessInstance
	CancelProcessInstance
	ResolveIncident
	methods int = iota
)

var methodNames = [methods]string{
	"any method", "ActivateJobs", "CompleteJob", "FailJob", "ThrowError", "SetVariables",
	"UpdateJobTimeout", "UpdateJobRetries", "Topology", "DeployResource",
	"CreateProcessInstance", "CancelProcessInstance", "ResolveIncident",
}

// String is the RPC's name in the protocol.
func (m Method) String() string {
	if int(m) < len(methodNames) {
		return methodNames[m]
	}
	return "unknown method"
}

// isCommand tells whether the broker writes the call to its log, and so counts
// it among what its writer buffer holds.
func (m Method) isCommand() bool { return m != ActivateJobs && m != Topology }

// Call is one request as a [Fault]'s Match sees it. Fields that a method does
// not have are empty.
type Call struct {
	Method  Method
	Caller  string // the connection's remote address, or the name given with the values
	Type    string // job type, ActivateJobs only
	Worker  string // worker name, ActivateJobs only
	JobKey  int64  // the job commands
	Element int64  // element instance key, SetVariables only
}
