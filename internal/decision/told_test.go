package decision

import (
	"strings"
	"testing"
	"time"

	"retry-worker/internal/classify"
)

// TestTold: what asks to wait, and what only speaks of a time.
func TestTold(t *testing.T) {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	rules, err := classify.New(nil, classify.Vocabulary{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		variable, text string
		want           time.Duration
	}{
		{"120", "", 2 * time.Minute},
		{"120.0", "", 2 * time.Minute},
		{"1.2e2", "", 2 * time.Minute},
		{"0.5", "", 500 * time.Millisecond},
		{"Mon, 02 Mar 2026 08:05:00 GMT", "", 5 * time.Minute},
		{"", `429 Too Many Requests {"retry-after": "30"}`, 30 * time.Second},
		{"", "HTTP 503, Retry-After: Mon, 02 Mar 2026 08:01:00 GMT", time.Minute},
		{"", "try again after 30 seconds", 30 * time.Second},
		{"", "Consumo Indevido (Deve ser aguardado 1 hora para efetuar nova solicitacao)", time.Hour},
		{"", "Tente novamente apos 1 hora.", time.Hour},
		{"", "TENTE NOVAMENTE AP\u00d3S 15 MINUTOS", 15 * time.Minute},
		{"", "Aguarde 30min e reenvie o lote", 30 * time.Minute},
		{"", "Servi&ccedil;o em manuten&ccedil;&atilde;o, aguarde meia hora", 30 * time.Minute},
		{"", "aguarde uma hora", time.Hour},
		{"", "please wait half an hour", 30 * time.Minute},
		{"", "Retry in 45 s", 45 * time.Second},
		{"", "aguarde de 5 a 10 minutos", 10 * time.Minute},
		{"", "aguarde 5 minutos; se persistir, tente em 2 horas", 2 * time.Hour},
		{"", "aguarde 24 horas", 4 * time.Hour},
		{"99999999999", "aguarde 9999 horas", 4 * time.Hour},
		{"60", "aguarde 10 minutos", 10 * time.Minute},
		{"", "aguarde 1h30", 90 * time.Minute},
		{"", "aguarde 1h30min", 90 * time.Minute},
		{"", "aguarde 1 h 30 min", 90 * time.Minute},
		{"", "aguarde 1 hora e 30 minutos", 90 * time.Minute},
		{"", "aguarde 30 (trinta) minutos", 30 * time.Minute},
		{"", "tente novamente em 1 dia", 4 * time.Hour},
		{"", "{Retry-After=[3600], Content-Type=[text/html]}", time.Hour},
		{"", `{"headers":"{\"Retry-After\":\"3600\"}"}`, time.Hour},
		{"", `{"retry_after_seconds":1800}`, 30 * time.Minute},
		{"", "Retry-After: 120s.", 2 * time.Minute},
		{"", "RATE_LIMIT; retry after 2026-03-02T09:00:00Z", time.Hour},
		{"", "RATE_LIMIT; retry after 2026-03-02T06:00:00-03:00", time.Hour},

		{"soon", "", 0},
		{"-120", "", 0},
		{"NaN", "", 0},
		{"1e99", "", 0},
		{"", "retry after 503 failed", 0},
		{"", "retry after 2000 failures", 0},
		{"", "Retry-After: 3600000ms", 0},
		{"", "Retry-After: 12:30", 0},
		{"", "retry after 2026-03-02T07:00:00Z", 0},
		{"", "aguarde 2 horas 3 tentativas restantes", 2 * time.Hour},
		{"", "tempo de espera esgotado: 30 segundos", 0},
		{"", "Timeout ao aguardar resposta ap\u00f3s 30 segundos, tentativa 3", 0},
		{"", "tente novamente ap\u00f3s as 10 horas", 0},
		{"", "aguardar: lote em processamento h\u00e1 2 horas", 0},
		{"", "tente novamente mais tarde. Prazo de envio: 3 horas", 0},
		{"", "retry failed after 3 hours", 0},
		{"", "lote 30 minutos", 0},
		{"", "aguarde 123456 segundos", 0},
		{"", "aguarde 1,5 horas", 0},
		{"", "wait", 0},
	} {
		_, said := rules.Read(tt.text, 0)
		f := &Failure{RetryAfter: tt.variable, Error: tt.text, Destination: "unimed", Said: said}
		if got := f.told(now); got != tt.want {
			t.Errorf("%q, %q: %s, want %s", tt.variable, tt.text, got, tt.want)
		}
		f.Destination = ""
		if got := f.told(now); got != 0 {
			t.Errorf("%q, %q of no destination: %s", tt.variable, tt.text, got)
		}
	}
	for _, words := range []string{"falha na 123 conex\u00e3o. ", "aguarde 1 hora. "} {
		long := strings.Repeat(words, 200)
		if testing.AllocsPerRun(10, func() { rules.Read(long, 0) }) > 200 {
			t.Errorf("it takes memory for each of the words %q", words)
		}
	}
}
