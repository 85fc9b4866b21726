package journal_test

import (
	"slices"
	"testing"
	"time"

	"retry-worker/internal/journal"
	"retry-worker/internal/redact"
	"retry-worker/internal/statistics"
)

// TestP99: of a hundred decisions one may take longer.
func TestP99(t *testing.T) {
	now := time.Now()
	for slow, want := range map[int64]float64{1: 0.001, 2: 1} {
		took := func(bucket, n int64) journal.Sum {
			return journal.Sum{Name: journal.SumTook, Policy: "p", Slot: journal.SlotOf(now), Bucket: bucket, N: n}
		}
		all := statistics.All([]journal.Sum{took(1000, 100-slow), took(1_000_000, slow)}, nil, now)
		i := slices.IndexFunc(all, func(k statistics.KPI) bool { return k.Name == "processing_time_p99" })
		if got := *all[i].Value; got != want {
			t.Errorf("where %d of 100 take a second the figure is %v, want %v", slow, got, want)
		}
	}
}

// TestOneCauseOnePattern: what differs from case to case is no part of a cause.
func TestOneCauseOnePattern(t *testing.T) {
	for want, texts := range map[string][]string{
		// Of these telephones one passes for a card by its check digit.
		"recusada para recipient #":        {"Recusada para recipient 5511912345678", "Recusada para recipient 5511912345601", "Recusada para recipient 12345"},
		"documento # inválido":             {"Documento 529.982.247-25 inválido", "Documento 4111111111111111 inválido", "Documento 12345 inválido"},
		"parado desde # de # de # às #":    {"Parado desde 3 de fevereiro de 2026 às 10:00", "Parado desde 21 de março de 2025 às 9h"},
		"parado desde # # de # de #":       {"Parado desde segunda-feira, 2 de fevereiro de 2026", "Parado desde ter., 12 de mar. de 2024"},
		"down since # # # # # gmt":         {"Down since Mon, 02 Feb 2026 10:00:00 GMT", "Down since Tue, 13 May 2025 09:59:59 GMT"},
		"down since # # # # #":             {"Down since Mon Feb  2 10:00:00 2026", "Down since Fri Dec 31 09:59:59 2027"},
		"down since # #":                   {"Down since 10:00 AM", "Down since 1:07 pm"},
		"you may retry de segunda a sexta": {"You may retry, de segunda a sexta"},
	} {
		for _, text := range texts {
			got := journal.CauseOf("p", "", redact.Line(text, 1000)).Pattern
			if got != want {
				t.Errorf("%q has the pattern %q, want %q", text, got, want)
			}
		}
	}
}

// TestCauseIsTheRule: rules that share a reason are causes of their own, and what the ids of codes were they stay.
func TestCauseIsTheRule(t *testing.T) {
	of := func(rule string) *journal.Fingerprint { return journal.CauseOf("p", rule, "TIMEOUT") }
	code := of("TIMEOUT")
	if code.ID != "00b9937ebbe72cf7" { // what a worker of the first version kept
		t.Errorf("the code's fingerprint is %s", code.ID)
	}
	login, certificate := of("tiss-login"), of("api-key")
	if login.ID == certificate.ID || login.Reason != "tiss-login" {
		t.Errorf("two rules are told as %+v and %+v", login, certificate)
	}
}
