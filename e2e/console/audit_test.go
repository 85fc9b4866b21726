package console_test

import (
	"encoding/json"
	"strings"
	"testing"

	"retry-worker/internal/testkit"
)

func TestTheAuditIsSearchedAndExported(t *testing.T) {
	s := open(t)
	const claimID, reason = "CLM-E2E-AUDIT-1050", "=1+1; conferido com a operadora"
	process := s.submit(t, claimID, 0, denied)
	b := s.visit(t, "pt-BR")
	b.reach(s, claimID)
	b.write("#retry-reason", reason)
	b.click("#retry input[name=when][value=now]")
	b.click("#retry button[type=submit]")
	b.await("the result", `document.querySelector("#decision .notice.ok")`)
	process.ended(t)

	b.open("/audit")
	b.says("#records", claimID)
	b.write("#id", claimID)
	b.click("form.filters button[type=submit]")
	b.await("that the policy is asked for", `document.querySelector("#wrong")`)
	b.says("#wrong", "Escolha também a política")
	b.choose("#policy", "tiss-submission")
	b.click("form.filters button[type=submit]")
	b.await("the records found", `!document.querySelector("#wrong") && document.querySelector("#records table")`)
	b.says("#records", claimID, "análise", "decisão", "entrega", "resultado", "local", reason)
	if rows := b.count("#records tbody tr"); rows != 5 {
		t.Errorf("the audit lists %d records of the claim, expected the analysis, that its process waits, the decision, its delivery and the outcome", rows)
	}

	// What is exported is what the command exports, of the same selection.
	for format, kind := range map[string]string{"jsonl": "application/x-ndjson", "csv": "text/csv"} {
		got := eval[[]string](b, `fetch([...document.querySelectorAll(".export a[download]")].find(a => a.href.includes("format=`+format+`")).href).then(async r => [r.headers.get("Content-Type"), r.headers.get("Content-Disposition"), await r.text()])`)
		want := string(s.run(t, "audit", "export", "--subject", claimID, "--format", format))
		if !strings.HasPrefix(got[0], kind) || !strings.HasPrefix(got[1], `attachment; filename="audit-`) {
			t.Errorf("%s comes as %s, %s", format, got[0], got[1])
		}
		if got[2] != strings.TrimPrefix(want, "\ufeff") { // which fetch takes away
			t.Errorf("the page exports as %s\n%s\nthe command\n%s", format, got[2], want)
		}
		if strings.Count(got[2], claimID) < 5 {
			t.Errorf("%s has not every record of the claim:\n%s", format, got[2])
		}
	}
	b.click("#records .row-link")
	b.await("the claim's page", `location.pathname.startsWith("/subjects/")`)

	var chain struct{ Records int }
	testkit.Must(t, json.Unmarshal(s.run(t, "audit", "verify", "-o", "json"), &chain))
	if chain.Records < 5 {
		t.Errorf("the chain has %d records", chain.Records)
	}
}
