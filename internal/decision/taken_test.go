package decision_test

import (
	"strconv"
	"testing"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// TestPerhapsTaken: what leaves open whether the portal took the claim, and what shows that nothing was sent (R33).
func TestPerhapsTaken(t *testing.T) {
	p := decisiontest.TISSSubmission()
	p.HTTPStatusVariable = "httpStatus"
	for status, kinds := range map[int]map[bool][]string{
		0: {
			true: {
				"TIMEOUT - Connection timeout after 30s", "java.net.SocketTimeoutException: Read timed out",
				"Tempo limite excedido ao aguardar resposta da operadora", "502 Bad Gateway", "HTTP/1.1 504 Gateway Time-out",
				"cURL error 28: Operation timed out after 30001 milliseconds with 0 bytes received", "socket hang up",
				"read tcp 10.0.0.1:5050: connection reset by peer", "Lote em processamento", "unexpected EOF",
				"A conex&atilde;o foi encerrada: conex\u00e3o perdida", "O portal n\u00e3o respondeu", "CONNECTION_ERROR",
				"N\u00e3o se sabe se o lote foi aceito", "Sem retorno: lote aceito ou recusado", "Batch accepted or rejected: unknown",
				"context deadline exceeded (Client.Timeout exceeded while awaiting headers)", "status code 502",
				"NoHttpResponseException: portal.example:443 failed to respond", "SoapFault: [HTTP] Error Fetching http headers",
				"A conex\u00e3o com o portal foi perdida durante o envio", "unexpected end of stream on Connection{portal.example:443}",
				"StreamResetException: stream was reset: CANCEL", "stream error: stream ID 1; INTERNAL_ERROR", "GOAWAY received",
				"Software caused connection abort: recv failed", "java.net.SocketException: Socket closed", "other side closed",
				"SSL peer shut down incorrectly", "header parser received no bytes", "java.nio.channels.ClosedChannelException",
				"Truncated chunk ( expected size: 8192; actual size: 4072)", "IncompleteRead(0 bytes read)",
				"http: server closed idle connection", "transfer closed with outstanding read data remaining",
				"HTTP/2 stream 0 was not closed cleanly", "ORA-29259: end-of-input reached", "ORA-29259: fim de entrada atingido",
				"The connection with the server was terminated abnormally", "Resposta truncada", "Queda de link no envio do lote",
				"(12030) A conex\u00e3o com o servidor foi finalizada de modo anormal", "Sem retorno da operadora",
				"(12152) O servidor retornou uma resposta inv\u00e1lida ou n\u00e3o reconhecida", "Resposta n\u00e3o recebida",
				"N\u00e3o houve retorno do webservice", "N\u00e3o recebemos resposta da operadora",
			},
			false: {
				"connect ECONNREFUSED 10.0.0.1:443", "Connection refused", "Conex\u00e3o recusada", "getaddrinfo ENOTFOUND portal.example",
				"javax.net.ssl.SSLHandshakeException: Remote host closed connection during handshake",
				"java.net.ConnectException: Connection timed out", "dial tcp 10.0.0.1:443: i/o timeout", "connect timed out",
				"ConnectTimeoutError: timeout of 5000ms", "stream was reset: REFUSED_STREAM", "HTTP 503 Service Unavailable: upstream timeout", "429 Too Many Requests",
				"Servi\u00e7o indispon\u00edvel", "INVALID_PATIENT_DATA", "glosa 1308", "guia 504 rejeitada", "Guia cancelada ou recusada", "Guia aceita", "", "Timeout ao conectar no portal",
			},
		},
		504: {true: {"", "erro"}, false: {"Connection refused"}},
		503: {false: {"timeout", "502 Bad Gateway"}},
		500: {true: {"timeout"}, false: {"502"}},
	} {
		for want, texts := range kinds {
			for _, s := range texts {
				v := claim("0", s)
				if status != 0 {
					v.HTTPStatus = decision.Value(strconv.Itoa(status))
				}
				if f, rejection := p.Read(v); f.Said.Perhaps != want || rejection != nil {
					t.Errorf("%q with status %d: %t, %v", s, status, f.Said.Perhaps, rejection)
				}
			}
		}
	}
}

// TestProbablyAccepted: a duplicate of what may have been taken is answered as specified, and is no mistake of billing.
func TestProbablyAccepted(t *testing.T) {
	p := decisiontest.TISSSubmission()
	for _, tt := range []struct {
		text, count string
		before      bool
		outcome     decision.Outcome
		reason      decision.Reason
		possibly    bool
	}{
		{"TIMEOUT", "0", false, decision.Retry, "TIMEOUT", true},
		{"CONNECTION_ERROR - Connection refused", "1", true, decision.Retry, "CONNECTION_ERROR", true},
		{"CONNECTION_ERROR - Connection refused", "1", false, decision.Retry, "CONNECTION_ERROR", false},
		{"DUPLICATE_CLAIM", "1", true, decision.PermanentError, decision.ReasonProbablyAccepted, true},
		{"DUPLICATE_CLAIM", "5", true, decision.MaxRetriesExceeded, decision.ReasonProbablyAccepted, true},
		{"DUPLICATE_CLAIM", "1", false, decision.PermanentError, "DUPLICATE_CLAIM", false},
		{"DUPLICATE_CLAIM (gateway timeout)", "1", false, decision.PermanentError, "DUPLICATE_CLAIM", true}, // the one that it doubts itself
		{"INVALID_PATIENT_DATA", "1", true, decision.PermanentError, "INVALID_PATIENT_DATA", true},
		{"TIMEOUT", "5", true, decision.MaxRetriesExceeded, decision.ReasonMaxRetries, true},
	} {
		f, rejection := p.Read(claim(tt.count, tt.text))
		if rejection != nil {
			t.Fatal(rejection)
		}
		d := decision.Decide(&f, p, decision.Past{PossiblyAccepted: tt.before}, analysed)
		team := d.Reason != decision.ReasonProbablyAccepted || d.Team == "faturamento"
		if d.Outcome != tt.outcome || d.Reason != tt.reason || d.PossiblyAccepted != tt.possibly || !team {
			t.Errorf("%s at %s, possibly accepted before: %t: %+v", tt.text, tt.count, tt.before, d)
		}
	}
}
