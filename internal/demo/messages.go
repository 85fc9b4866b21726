package demo

// messages are sent by the Evolution API (WHATSAPP_MESSAGE; TRD-0003).
func messages() *Process {
	down := Failure{"Service Unavailable", map[string]any{"httpStatus": 503}}
	return &Process{
		ID: "WHATSAPP_MESSAGE", SampleID: "MSG-DEMO-%d", Subjects: "messages", System: "the Evolution API",
		IDVariable: "messageId", ErrorVariable: "sendError",
		Work: Work{JobType: "send-whatsapp-message", ErrorCode: "SEND_FAILED", Try: "attempt",
			Done: "accepted by the Evolution API"},
		Samples: []*Sample{
			{Shows: "sent at once"},
			{Shows: "503, then sent", Failures: []Failure{down}},
			{Shows: "no answer in time, then sent", Failures: texts("timeout of 30000ms exceeded")},
			{Shows: "an error that nobody knows, retried to be safe",
				Failures: texts("instância desconectada", "instância desconectada")},
			{Shows: "404, no such number: a dead letter at once", Discard: true,
				Failures: []Failure{{"number is not registered on WhatsApp", map[string]any{"httpStatus": 404}}}},
			{Shows: "down through all 4 attempts: a dead letter, sent again", Left: true, Failures: times(4, down)},
			{Shows: "down through all 4 attempts: a dead letter, let go", Failures: times(4, down), Discard: true},
		},
	}
}
