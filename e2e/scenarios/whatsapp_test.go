package scenarios

import (
	"strconv"
	"testing"
	"time"
)

// The delays of R13 before the attempts 2, 3 and 4.
var messageRungs = []rung{{5 * time.Second, "PT5S", 1}, {30 * time.Second, "PT30S", 1}, {5 * time.Minute, "PT5M", 5}}

const messageTeam = "atendimento"

// answered is how the Evolution API answers a failed send.
func answered(status int, text string) map[string]any {
	return map[string]any{"sendError": text, "httpStatus": status}
}

// TRD-0003: attempt 1 at once, 2 to 4 after 5 s, 30 s and 5 min; after the fourth a dead letter, which a person sends
// again or lets go.
func TestMessageIsTriedFourTimesThenDead(t *testing.T) {
	withEverybody(t, byREST, func(t *testing.T, s *world) {
		down := answered(503, "Service Unavailable")
		again := claim{Failures: []map[string]any{down, down, down, down}}
		letGo := again
		letGo.Review.Discard = true
		ids := []string{s.id("MSG", 1), s.id("MSG", 2)}
		keys := []int64{s.run(whatsapp, ids[0], again, nil), s.run(whatsapp, ids[1], letGo, nil)}
		for made, r := range messageRungs {
			for _, key := range keys {
				s.expectRung(whatsapp, key, made, 3, r, "TRANSIENT", "Service Unavailable")
			}
			s.fire(keys...)
		}
		s.awaitEnded(keys...)
		for _, key := range keys {
			s.expectDeadLetter(whatsapp, key, 0, wantDead{3, 3, "TRANSIENT", "Maximum of 3 retries reached", "Service Unavailable", messageTeam})
		}
		s.expectEnd(whatsapp, keys[0], whatsapp.recorded, 5)
		s.expectVariables(s.instance(keys[0]), map[string]string{"reviewDecision": `"reprocess"`, "retryCount": "4", "sendError": "null", "httpStatus": "null"})
		s.expectRemembered(whatsapp, ids[0], "recovered", "entregue", "RETRY", "RETRY", "RETRY", "MAX_RETRIES_EXCEEDED")
		s.expectEnd(whatsapp, keys[1], "discarded", 4)
		s.expectRemembered(whatsapp, ids[1], "discarded", "descartada", "RETRY", "RETRY", "RETRY", "MAX_RETRIES_EXCEEDED")
		s.expectCounts(counts{
			"send-whatsapp-message error thrown": 8, "send-whatsapp-message completed": 1, "analyze-retry completed": 6, "analyze-retry error thrown": 2,
			"retry-review completed": 2, "record-retry-outcome completed": 1, "timers triggered": 3*2 + 1, "processes completed": 2,
		})
		s.done("WhatsApp: 4 attempts, dead letter", "2 messages, 5 s, 30 s, 5 min; one sent again, one let go")
	})
}

// R13: 400 and 404 are permanent; 429, 500, 502, 503, 504 and a timeout transient; anything else is unknown and retried.
// What is accepted is sent at once.
func TestMessageErrorsAreClassified(t *testing.T) {
	withEverybody(t, byREST, func(t *testing.T, s *world) {
		accepted := s.run(whatsapp, s.id("SENT", 1), claim{}, nil)
		type sent struct {
			key     int64
			id      string
			failure map[string]any
			class   string
		}
		var all []sent
		var retried []int64
		send := func(class string, failure map[string]any) {
			id := s.id("MSG", len(all))
			c := claim{Failures: []map[string]any{failure}}
			c.Review.Discard = true
			key := s.run(whatsapp, id, c, nil)
			all = append(all, sent{key, id, failure, class})
			if class != "PERMANENT" {
				retried = append(retried, key)
			}
		}
		for _, status := range []int{400, 404} {
			send("PERMANENT", answered(status, "recusado"))
			send("PERMANENT", map[string]any{"sendError": "Request failed with status code " + strconv.Itoa(status)})
		}
		for _, status := range []int{429, 500, 502, 503, 504} {
			send("TRANSIENT", answered(status, "recusado"))
			send("TRANSIENT", map[string]any{"sendError": "Request failed with status code " + strconv.Itoa(status)})
		}
		send("TRANSIENT", map[string]any{"sendError": "timeout of 30000ms exceeded"})
		send("UNKNOWN", map[string]any{"sendError": "instância desconectada"})
		send("UNKNOWN", answered(418, "I'm a teapot"))
		for _, m := range all {
			if m.class != "PERMANENT" {
				s.expectRung(whatsapp, m.key, 0, 3, messageRungs[0], m.class, m.failure["sendError"].(string))
			}
		}
		s.fire(retried...)
		s.awaitEnded(accepted)
		s.expectEnd(whatsapp, accepted, whatsapp.atOnce, 1)
		for _, m := range all {
			s.awaitEnded(m.key)
			text := m.failure["sendError"].(string)
			if m.class != "PERMANENT" {
				s.expectEnd(whatsapp, m.key, whatsapp.recorded, 2)
				s.expectRemembered(whatsapp, m.id, "recovered", "entregue", "RETRY")
				continue
			}
			s.expectEnd(whatsapp, m.key, "discarded", 1)
			s.expectDeadLetter(whatsapp, m.key, 0, wantDead{0, 3, "PERMANENT", "Permanent error, not retried", text, messageTeam})
			s.expectRemembered(whatsapp, m.id, "discarded", "descartada", "PERMANENT_ERROR")
		}
		n, dead := len(all), len(all)-len(retried)
		s.expectCounts(counts{
			"send-whatsapp-message error thrown": n, "send-whatsapp-message completed": 1 + len(retried),
			"analyze-retry completed": len(retried), "analyze-retry error thrown": dead, "retry-review completed": dead,
			"record-retry-outcome completed": len(retried), "timers triggered": len(retried), "processes completed": 1 + n,
		})
		s.done("WhatsApp: errors classified", "%d messages, %d dead at once, %d sent at attempt 2", n, dead, len(retried))
	})
}
