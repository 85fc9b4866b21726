package decision_test

import (
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// TestRNBIL005Scenarios are the eight of RN-BIL-005 §13.5, by its names.
func TestRNBIL005Scenarios(t *testing.T) {
	p := decisiontest.TISSSubmission()

	t.Run("RN-BIL-005 §13.5.1 Erro transiente agendando retry", func(t *testing.T) {
		// §9.1, steps 1 to 7.
		d := decide(p, claim("1", "TIMEOUT - Connection timeout after 30s"))
		wantRetry(t, d, decision.Transient, 2, 8, 12)
		if d.RetryReason != "Transient error, retry 2 of 5" {
			t.Errorf("retryReason is %q", d.RetryReason)
		}
	})
	t.Run("RN-BIL-005 §13.5.2 Máximo de tentativas excedido", func(t *testing.T) {
		// §9.2 with R10: the analysis with retryCount 5 is the first to exceed.
		wantRetry(t, decide(p, claim("4", "TIMEOUT")), decision.Transient, 5, 64, 96)
		wantFinal(t, decide(p, claim("5", "TIMEOUT")), decision.MaxRetriesExceeded, 5)
	})
	t.Run("RN-BIL-005 §13.5.3 Erro permanente detectado", func(t *testing.T) {
		// §9.3.
		d := decide(p, claim("0", "INVALID_PATIENT_DATA - CPF inválido"))
		wantFinal(t, d, decision.PermanentError, 0)
		if d.Reason != "INVALID_PATIENT_DATA" || d.Team != "cadastro" {
			t.Errorf("reason %s for team %s, want INVALID_PATIENT_DATA for cadastro", d.Reason, d.Team)
		}
	})
	t.Run("RN-BIL-005 §13.5.4 Cálculo de backoff exponencial", func(t *testing.T) { //nolint:misspell // the document is Portuguese
		// §4.1's table: six tries of a policy with more than five retries, then the cap.
		for n, want := range []int64{5, 10, 20, 40, 80, 160, 240, 240} {
			d := decide(patient(100), claim(strconv.Itoa(n), "TIMEOUT"))
			if d.Backoff.Raw != time.Duration(want)*time.Minute {
				t.Errorf("retryCount %d: raw backoff %s, want %d minutes", n, d.Backoff.Raw, want)
			}
		}
	})
	t.Run("RN-BIL-005 §13.5.5 Jitter aplicado corretamente", func(t *testing.T) {
		minutes := backoffMinutes(p, "2", 2000)
		if len(minutes) != 9 || slices.Min(minutes) != 16 || slices.Max(minutes) != 24 {
			t.Errorf("20 minutes come out as %v, want every minute from 16 to 24", minutes)
		}
	})
	t.Run("RN-BIL-005 §13.5.6 Classificação de erros conhecidos", func(t *testing.T) {
		for _, code := range permanentCodes {
			if m := p.Rules.Classify(code+" - detalhe", 0); m.Class != decision.Permanent || m.Name != code {
				t.Errorf("%s is %+v", code, m)
			}
		}
		for _, code := range transientCodes {
			if m := p.Rules.Classify(code+" - detalhe", 0); m.Class != decision.Transient || m.Name != code {
				t.Errorf("%s is %+v", code, m)
			}
		}
	})
	t.Run("RN-BIL-005 §13.5.7 Tratamento de erros desconhecidos", func(t *testing.T) {
		d := decide(p, claim("0", "Falha inesperada no lote"))
		wantRetry(t, d, decision.Unknown, 1, 5, 6)
		if d.RetryReason != "Unknown error, retry 1 of 5" || d.MatchedRule != "" {
			t.Errorf("reason %q by rule %q", d.RetryReason, d.MatchedRule)
		}
	})
	t.Run("RN-BIL-005 §13.5.8 Idempotência de análise", func(t *testing.T) {
		// R6: another process (a policy built anew) comes to the same decision, to the last field.
		for count := range 6 {
			v := claim(strconv.Itoa(count), "TIMEOUT")
			first, second := decide(p, v), decide(decisiontest.TISSSubmission(), v)
			if first != second {
				t.Errorf("retryCount %d: the second analysis differs:\n%+v\n%+v", count, first, second)
			}
		}
	})
}

// backoffMinutes lists the different backoffs of so many claims, in order.
func backoffMinutes(p *decision.Policy, count string, claims int) []int64 {
	seen := map[int64]bool{}
	for i := range claims {
		v := claim(count, "TIMEOUT")
		v.ID = decision.Text("CLM-JITTER-" + strconv.Itoa(i))
		d := decide(p, v)
		if math.Abs(d.Backoff.JitterRatio) > 0.20 {
			return nil
		}
		seen[decision.Minutes(d.Backoff.Delay)] = true
	}
	var minutes []int64
	for m := range seen {
		minutes = append(minutes, m)
	}
	slices.Sort(minutes)
	return minutes
}
