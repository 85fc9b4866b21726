package console_test

import (
	"testing"
	"time"

	"retry-worker/internal/testkit"
)

const denied = "AUTHORIZATION_DENIED: senha de autorização vencida"

// The way of a person from the overview to a claim that goes on and recovers, on a page that is never loaded anew.
func TestAPersonRetriesADeadLetterAndSeesItRecover(t *testing.T) {
	s := openAlone(t) // it moves the engine's clock
	const claimID, reason = "CLM-E2E-RETRY-1001", "Senha nova pedida à operadora e gravada na conta."
	process := s.submit(t, claimID, 0, denied)
	s.submit(t, "CLM-E2E-OTHER-1002", 0, "INVALID_PATIENT_DATA: carteira não confere")
	s.deadLetter(t, "CLM-E2E-OTHER-1002")
	l := s.deadLetter(t, claimID)

	b := s.visit(t, "pt-BR")
	b.open("/")
	b.click(`.cards a[href="/dead-letters"]`)
	b.await("the list", `location.pathname === "/dead-letters" && document.querySelector(".row-link")`)

	b.write("#q", claimID)
	b.click(".more summary")
	b.choose("#team", "faturamento")
	b.click(`form.filters button[type=submit]`)
	b.await("the filtered list", `location.search.includes("team=faturamento") && document.querySelectorAll(".row-link").length === 1`)
	b.says("#list", claimID, "Autorização negada")

	b.click(".row-link")
	b.await("the claim's page", `location.pathname.startsWith("/subjects/")`)
	b.says("#events", denied, "AUTHORIZATION_DENIED", "O que fazer", "Faturamento", "Erro permanente")

	b.says("#retry [data-goes]", "Será reenviada agora; dá para desfazer por 30 segundos.") // by a person who corrected it
	b.click("#retry .options summary")
	b.click(`#retry input[name=when][value=backoff]`)
	b.says("#retry p[data-goes]", "Será reenviada em ")
	b.write("#retry-reason", reason)
	b.click("#retry button.primary")
	b.await("what can be undone", `document.querySelector("#later")`)
	b.says("#later", "local mandou reenviar", reason, "Desfazer")
	b.await("the result, half a minute later", `document.querySelector("#decision .notice.ok")`)
	b.says("#decision .notice.ok", "Será reenviada", "tentativa 1 de 5", "por local", reason, "Próxima tentativa em")
	if now := s.find(t, claimID); now.State != "reprocessing" {
		t.Errorf("the dead letter is %s, expected reprocessing", now.State)
	}
	b.await("that the process took it", `document.querySelector("#decision-state").innerText.includes("recebida pelo processo")`)

	eval[int](b, `(window.notLoadedAnew = 1)`)
	next, err := time.Parse(time.RFC3339, eval[string](b, `document.querySelector("#decision .notice strong time").dateTime`))
	testkit.Must(t, err)
	if wait := time.Until(next); wait < 4*time.Minute || wait > 6*time.Minute {
		t.Errorf("the retry comes in %v, expected the policy's 4 to 6 minutes", wait)
	}
	s.passUntil(t, next)
	result := process.ended(t)
	b.await("it recovered, on the page as it was opened",
		`window.notLoadedAnew === 1 && document.querySelector("#standing").innerText.includes("Resolvida") && document.querySelector("#decision").innerText.includes("resolvida")`)
	b.says("#claim-head", "resolvida")
	b.says("#events", "Resolvida: o processo confirmou")
	for name, want := range map[string]any{
		"reviewDecision": "reprocess", "reviewReason": reason, "reviewedBy": "local", "retryCount": 1.0, "deadLetterId": l.ID,
	} {
		if result[name] != want {
			t.Errorf("the process ended with %s %v, expected %v", name, result[name], want)
		}
	}
	if n := s.portal.submissions(claimID); n != 2 {
		t.Errorf("the claim was submitted %d times, expected twice", n)
	}
	b.open("/dead-letters?state=recovered&q=" + claimID)
	b.says("#list", claimID)
}

// passUntil moves the engine's clock to an instant.
func (s *fixture) passUntil(t *testing.T, instant time.Time) {
	t.Helper()
	now, err := s.engine.Time(t.Context())
	testkit.Must(t, err)
	if d := instant.Sub(now); d > 0 {
		testkit.Must(t, s.engine.AddTime(t.Context(), d.Truncate(time.Millisecond)+time.Second))
	}
}
