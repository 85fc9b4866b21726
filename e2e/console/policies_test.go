package console_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"retry-worker/internal/testkit"
)

func urlQuery(s string) string { return url.QueryEscape(s) }

// decided is what `retry-worker decide -o json` says.
type decided struct {
	Outcome, RetryReason, ErrorClassification, Message string
	BackoffDuration                                    string
	RetryCount, MaxRetries                             int
	MatchedRule                                        *string
	ResponsibleTeam                                    string
}

// inWords makes "5 s" of "PT5S": the durations here have one unit.
var inWords = strings.NewReplacer("PT", "", "S", " s", "M", " min", "H", " h")

func TestThePoliciesPageSaysWhatDecideSays(t *testing.T) {
	s := open(t)
	classes := map[string]string{"PERMANENT": "permanente", "TRANSIENT": "temporário", "UNKNOWN": "desconhecido"}
	teams := map[string]string{"cadastro": "Cadastro", "faturamento": "Faturamento", "ti": "TI"}
	for name, c := range map[string]struct{ policy, id, err, count string }{
		"retried":             {"tiss-submission", "CLM-TRY-77", "HTTP 503 Service Unavailable", "2"},
		"permanent":           {"tiss-submission", "CLM-TRY-77", "INSURANCE_EXPIRED: carteira vencida", "0"},
		"unknown":             {"tiss-submission", "CLM-TRY-78", "never heard of", "1"},
		"at the limit":        {"tiss-submission", "CLM-TRY-77", "TIMEOUT", "5"},
		"another policy":      {"whatsapp-message", "msg-1", "404 not on WhatsApp", "0"},
		"rejected id":         {"tiss-submission", "no claim", "TIMEOUT", "0"},
		"rejected count":      {"tiss-submission", "CLM-TRY-77", "TIMEOUT", "2.5"},
		"hostile, and nobody": {"tiss-submission", "CLM-TRY-77", "<script>alert(1)</script>\x1b[31m", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			var want decided
			testkit.Must(t, json.Unmarshal(s.run(t, "decide", "--policy", c.policy, "--id", c.id, "--error", c.err, "--retry-count", c.count, "-o", "json"), &want))
			b := s.visit(t, "pt-BR")
			b.open("/policies")
			b.choose("#try-policy", c.policy)
			b.fill("#try-id", c.id)
			b.fill("#try-count", c.count)
			b.fill("#try-error", c.err)
			b.click("form.try button[type=submit]")
			b.await("the answer", `document.querySelector("#result .notice")`)
			eval[int](b, `(document.querySelectorAll("#result details").forEach(d => d.open = true), 1)`)
			if want.Outcome == "REJECTED" {
				b.says("#result", "seriam recusados", want.Message)
				return
			}
			says := []string{classes[want.ErrorClassification]}
			if want.MatchedRule != nil {
				says = append(says, *want.MatchedRule)
			} else {
				says = append(says, "erro não reconhecido por nenhuma regra")
			}
			switch {
			case want.Outcome == "RETRY":
				says = append(says, fmt.Sprintf("Nova tentativa %d de %d", want.RetryCount, want.MaxRetries), "Aguarda "+inWords.Replace(want.BackoffDuration)+",")
			case want.Outcome == "PERMANENT_ERROR":
				says = append(says, "Erro permanente", teams[want.ResponsibleTeam])
			default:
				says = append(says, fmt.Sprintf("Limite de tentativas atingido (%d)", want.MaxRetries), teams[want.ResponsibleTeam])
			}
			b.says("#result", says...)
			if kept := eval[string](b, `document.querySelector("#try-id").value`); kept != c.id {
				t.Errorf("the form has forgotten what was tried: %q", kept)
			}
		})
	}
	b := s.visit(t, "pt-BR")
	b.open("/audit?policy=tiss-submission&id=CLM-TRY-77")
	b.says("#records", "Nenhum registro encontrado")
}

// fill gives a field a value in place of the one it has.
func (b *tab) fill(selector, value string) {
	b.t.Helper()
	eval[int](b, fmt.Sprintf(`(document.querySelector(%q).value = %s, 1)`, selector, quoted(value)))
}
