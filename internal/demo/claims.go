package demo

import "fmt"

// claims are submitted to the insurers' TISS portal (SUB_06; RN-BIL-005, RN-BIL-004).
func claims() *Process {
	const down = "Portal TISS não respondeu em 30s: TIMEOUT"
	const (
		accepted   = "accepted at once"
		transient  = "the portal stumbles, then accepts"
		unknown    = "an error that nobody knows, retried to be safe"
		permanent  = "a person must act"
		credential = "many of one cause: the portal's credential has expired"
		exhausted  = "the portal errs through the whole ladder"
		rejected   = "the process holds nonsense: an incident"
	)
	always := times(6, Failure{Text: "500 Internal Server Error"})
	p := &Process{
		ID: "SUB_06", SampleID: "CLM-DEMO-%d", Subjects: "claims", System: "the insurers' TISS portal",
		IDVariable: "claimId", ErrorVariable: "submissionError",
		Work: Work{JobType: "submit-claim", ErrorCode: "SUBMISSION_FAILED", Try: "submission",
			Done: "accepted by the portal"},
		Samples: []*Sample{
			{Shows: accepted},
			{Shows: accepted},
			{Shows: accepted},
			{Shows: transient, Failures: texts("TIMEOUT - Connection timeout after 30s")},
			{Shows: transient, Failures: texts("HTTP 503 Service Unavailable", "HTTP 504 Gateway Timeout")},
			{Shows: transient, Failures: texts("java.net.SocketTimeoutException: Read timed out")},
			{Shows: transient, Failures: texts("CONNECTION_ERROR: connection reset by peer", "NETWORK_ERROR: no route to host",
				"HTTP 503")},
			{Shows: transient, Failures: texts("429 Too Many Requests: rate limit of the operator reached")},
			{Shows: transient, Failures: texts("500 Internal Server Error")},
			{Shows: unknown, Failures: texts("Resposta inesperada da operadora")},
			{Shows: unknown, Failures: texts("unexpected end of XML document at line 4",
				"unexpected end of XML document at line 4")},
			{Shows: unknown, Failures: texts("Falha ao processar lote")},
			{Shows: unknown, Failures: texts("ORA-12541")},
			{Shows: unknown, Failures: texts("lote recusado sem motivo informado")},
			{Shows: permanent, Failures: texts("INVALID_PATIENT_DATA - data de nascimento ausente"), Left: true},
			{Shows: permanent, Failures: texts("INSURANCE_EXPIRED: plano encerrado"), Discard: true},
			{Shows: permanent, Failures: texts("Authorization denied by the operator"), Left: true},
			{Shows: permanent, Failures: texts("DUPLICATE_CLAIM (answered after a TIMEOUT)"), Discard: true},
			{Shows: permanent, Failures: texts("INVALID_PROCEDURE_CODE 99999999")},
			{Shows: permanent, Failures: texts("HTTP 503", "INVALID_PATIENT_DATA - sexo não informado")},
			{Shows: exhausted, Failures: always, Left: true},
			{Shows: exhausted, Failures: always},
			{Shows: exhausted, Failures: always, Discard: true},
			{Shows: exhausted, Failures: always},
			{Shows: exhausted, Failures: always, Discard: true},
			{Shows: rejected, Incident: true, Variables: map[string]any{"retryCount": -1}, Failures: texts(down)},
			{Shows: rejected, Incident: true, Variables: map[string]any{"retryCount": "2"}, Failures: texts(down)},
			{Shows: rejected, Incident: true, Variables: map[string]any{"retryCount": 2.5}, Failures: texts(down)},
			{Shows: rejected, Incident: true, Variables: map[string]any{"lastSubmissionTime": "ontem"}, Failures: texts(down)},
			{Shows: rejected, Incident: true, Failures: texts("   ")},
		},
	}
	for range 20 {
		p.Samples = append(p.Samples, &Sample{Shows: credential, Failures: texts("AUTHORIZATION_DENIED: credencial do portal vencida"), Left: true})
	}
	for i, s := range p.Samples { // each goes elsewhere: a portal that keeps failing would hold the others
		if s.Variables == nil {
			s.Variables = map[string]any{}
		}
		s.Variables["operadora"] = fmt.Sprintf("operadora-%02d", i+1)
	}
	return p
}
