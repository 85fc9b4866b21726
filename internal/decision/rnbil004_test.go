package decision_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// TestRNBIL004Scenarios are the eight of RN-BIL-004 §13.5, by its names.
func TestRNBIL004Scenarios(t *testing.T) {
	p := decisiontest.TISSSubmission()

	t.Run("RN-BIL-004 §13.5.1 Erro transitório (SERVICE_UNAVAILABLE)", func(t *testing.T) {
		// §9.1, with R5's 5 to 6 minutes in place of its 7.
		wantRetry(t, decide(p, claim("0", "SERVICE_UNAVAILABLE")), decision.Transient, 1, 5, 6)
	})
	t.Run("RN-BIL-004 §13.5.2 Erro permanente (INVALID_PROCEDURE_CODE)", func(t *testing.T) {
		// §9.2.
		d := decide(p, claim("0", "INVALID_PROCEDURE_CODE"))
		wantFinal(t, d, decision.PermanentError, 0)
		if d.Team != "faturamento" {
			t.Errorf("team is %s, want faturamento", d.Team)
		}
	})
	t.Run("RN-BIL-004 §13.5.3 Erro desconhecido (retry por segurança)", func(t *testing.T) {
		wantRetry(t, decide(p, claim("2", "operadora não respondeu como esperado")), decision.Unknown, 3, 16, 24)
	})
	t.Run("RN-BIL-004 §13.5.4 Backoff exponencial crescente", func(t *testing.T) { //nolint:misspell // the document is Portuguese
		// §4.1. Even at its luckiest a retry waits longer than the one before at its unluckiest.
		longest := time.Duration(0)
		for n := range int64(5) {
			if raw := p.Backoff.Raw(n); raw != 5*time.Minute<<n {
				t.Errorf("retryCount %d: raw backoff %s, want %s", n, raw, 5*time.Minute<<n)
			}
			if d := p.Backoff.After(0, n).Delay; d <= longest && n > 0 {
				t.Errorf("retryCount %d waits %s at least, the one before up to %s", n, d, longest)
			}
			longest = p.Backoff.After(almostOne, n).Delay
		}
	})
	t.Run("RN-BIL-004 §13.5.5 Jitter distribuído (-20% a +20%)", func(t *testing.T) {
		// §4.2's example: retryCount 2 gives 16 to 24 minutes. TestJitterIsUniform holds the distribution.
		if got := backoffMinutes(p, "2", 2000); !slices.Equal(got, []int64{16, 17, 18, 19, 20, 21, 22, 23, 24}) {
			t.Errorf("20 minutes come out as %v", got)
		}
	})
	t.Run("RN-BIL-004 §13.5.6 Máximo de retries (5 tentativas)", func(t *testing.T) {
		// §9.3: five failures are retried, the sixth is not.
		for n := range 5 {
			if d := decide(p, claim(strconv.Itoa(n), "SERVICE_UNAVAILABLE")); !d.ShouldRetry() {
				t.Errorf("retryCount %d is not retried: %s", n, d.RetryReason)
			}
		}
		wantFinal(t, decide(p, claim("5", "SERVICE_UNAVAILABLE")), decision.MaxRetriesExceeded, 5)
	})
	t.Run("RN-BIL-004 §13.5.7 Backoff máximo (240 minutos cap)", func(t *testing.T) {
		// BIL-004-V3; the cap holds after the jitter, which may still shorten the wait.
		for _, count := range []string{"6", "7", "63", "64", "1024", "9223372036854775806"} {
			for i := range 200 {
				v := claim(count, "TIMEOUT")
				v.ID = decision.Text("CLM-CAP-" + strconv.Itoa(i))
				d := decide(patient(1<<63-1), v)
				if m := decision.Minutes(d.Backoff.Delay); m < 192 || m > 240 || !d.Backoff.AtMaximum {
					t.Fatalf("retryCount %s: %d minutes, at maximum %v", count, m, d.Backoff.AtMaximum)
				}
			}
		}
	})
	t.Run("RN-BIL-004 §13.5.8 Backoff mínimo (5 minutos garantido)", func(t *testing.T) {
		if got := backoffMinutes(p, "0", 2000); !slices.Equal(got, []int64{5, 6}) {
			t.Errorf("5 minutes come out as %v, want 5 and 6", got)
		}
	})
}
