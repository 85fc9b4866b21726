package scenarios

import (
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
// again or lets go. Most are sent at once.
func TestMessageIsTriedFourTimesThenDead(t *testing.T) {
	s := begin(t)
	down := answered(503, "Service Unavailable")
	again := claim{Failures: []map[string]any{down, down, down, down}}
	letGo := again
	letGo.Review.Discard = true
	ids := []string{s.id("MSG", 1), s.id("MSG", 2)}
	sent := s.play(whatsapp, s.id("MSG", 3), claim{}, nil)
	keys := []int64{s.play(whatsapp, ids[0], again, nil), s.play(whatsapp, ids[1], letGo, nil)}
	for made, r := range messageRungs {
		for _, key := range keys {
			s.expectRung(whatsapp, key, made, 3, r, "TRANSIENT", "Service Unavailable")
		}
		s.fire(keys...)
	}
	s.awaitEnded(append(keys, sent)...)
	s.expectEnd(whatsapp, sent, whatsapp.atOnce, 1)
	for _, key := range keys {
		s.expectDeadLetter(whatsapp, key, 0, wantDead{3, 3, "TRANSIENT", "Maximum of 3 retries reached", "Service Unavailable", messageTeam})
	}
	s.expectEnd(whatsapp, keys[0], whatsapp.recorded, 5)
	s.expectVariables(s.instance(keys[0]), map[string]string{"reviewDecision": `"reprocess"`, "retryCount": "4", "sendError": "null", "httpStatus": "null"})
	s.expectRemembered(whatsapp, ids[0], "recovered", "entregue", "RETRY", "RETRY", "RETRY", "MAX_RETRIES_EXCEEDED")
	s.expectEnd(whatsapp, keys[1], "discarded", 4)
	s.expectRemembered(whatsapp, ids[1], "discarded", "descartada", "RETRY", "RETRY", "RETRY", "MAX_RETRIES_EXCEEDED")
	s.expectCounts(counts{
		"send-whatsapp-message error thrown": 8, "send-whatsapp-message completed": 2, "analyze-retry completed": 6, "analyze-retry error thrown": 2,
		"retry-review completed": 2, "record-retry-outcome completed": 1, "timers triggered": 3*2 + 1, "processes completed": 3,
	})
	s.done("WhatsApp: 4 attempts, dead letter", "3 messages, 5 s, 30 s, 5 min; one sent again, one let go, one sent at once")
}
