package console_test

import (
	"fmt"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/internal/api"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// TestManyAreReleasedAtOnceFromTheirCause is a person's way from one cause to claims that have all gone through: the plan,
// the run at its pace, stopped and let go on, each verified, on a page that is never loaded anew meanwhile.
func TestManyAreReleasedAtOnceFromTheirCause(t *testing.T) {
	s := open(t)
	const n = 10
	var processes []instance
	for i := range n {
		processes = append(processes, s.submit(t, fmt.Sprintf("CLM-E2E-MANY-11%02d", i), 0, fmt.Sprintf("LoginInvalido: prestador %d bloqueado no portal", 4100+i)))
	}
	s.submit(t, "CLM-E2E-MANY-1199", 0, denied) // which is none of theirs
	s.deadLetter(t, "CLM-E2E-MANY-1199")
	for i := range n {
		s.deadLetter(t, fmt.Sprintf("CLM-E2E-MANY-11%02d", i))
	}
	b := s.visit(t, "pt-BR")
	b.open("/dead-letters")
	b.click(`.views a[href="/dead-letters/groups"]`)
	b.await("the causes", `location.pathname === "/dead-letters/groups"`)
	cause := `[...document.querySelectorAll("#groups tbody tr")].find(r => r.innerText.includes("prestador # bloqueado no portal"))`
	if row := eval[string](b, cause+`.innerText`); !strings.Contains(row, "Usuário ou senha inválidos") || !strings.Contains(row, "Tratar todas as 10") {
		t.Fatalf("the cause says %q, expected one for all ten", row)
	}
	eval[int](b, `(`+cause+`.querySelector(".do .button").click(), 1)`)
	b.await("the plan", `location.pathname === "/bulk-runs/new" && document.querySelector("#start")`)
	b.says("main", "Reenviar as 10", "Nenhuma fica de fora.", "prestador # bloqueado no portal")

	// What is chosen anew is planned anew, before it can be started.
	b.click(`#settings input[name=when][value=now]`)
	b.await("that the plan is old", `!document.querySelector("#settings-changed").hidden`)
	sent := b.posts()
	b.write("#reason-text", "Senha trocada no portal.")
	b.click("#start-go")
	if b.posts() != sent {
		t.Error("an old plan was started")
	}
	b.choose("#per-minute", "40")
	b.click("#settings button")
	b.await("the new plan", `document.querySelector("#start [name=perMinute]").defaultValue === "40" && document.querySelector("#start [name=when][value=now]").defaultChecked`)
	b.says("#start", "40 por minuto, durante 15 s")
	b.click("#start-go") // for the reason that was written before
	b.await("the run", `location.pathname.startsWith("/bulk-runs/0") && document.querySelector("#pause")`)
	b.says("main", "Reenvio")
	b.begun(n)
	b.click("#pause")
	b.await("that it stands", `document.querySelector("#resume")`)
	b.says("#run-head", "pausada")
	b.says("#steering", "Pausada por", "Senha trocada no portal.")
	if left := eval[int](b, outcomeOf("planned")); left < 1 {
		t.Errorf("none was left to wait for its turn: the pace is not kept")
	}
	for _, width := range []int64{360, 1280} {
		b.fits("a run", width)
		b.accessible(fmt.Sprintf("a run, %d px", width))
	}
	b.click("#resume")
	b.await("that all have gone through, live", outcomeOf("recovered")+` === 10 && document.querySelector("#run-head").innerText.includes("concluída")`)
	b.says("#result", "10 de 10 já tratadas")
	for _, p := range processes {
		if result := p.ended(t); result["reviewedBy"] != "local" || result["reviewReason"] != "Senha trocada no portal." {
			t.Errorf("a process ended with %v", result)
		}
	}
	b.click("#items .row-link")
	b.await("a claim's page", `location.pathname.startsWith("/subjects/")`)
	b.says("#decision", "Em uma ação em massa.")
}

// begun waits until some of the run's dead letters are decided, by the API: before that it is only being prepared.
func (b *tab) begun(all int64) {
	b.t.Helper()
	id := eval[string](b, `location.pathname.split("/").pop()`)
	var run api.BulkRun
	wait.Until(b.t, "the run's first decision", func() bool {
		testkit.Must(b.t, harness.Ask(b.t.Context(), b.base, "", "/bulk-runs/"+id, nil, &run))
		return run.State == "running" && run.Total == all && run.Counts["planned"] < all
	}, func() string { return fmt.Sprint(run) })
}

// outcomeOf is how many of a run came to an outcome, on its page.
func outcomeOf(outcome string) string {
	return fmt.Sprintf(`parseInt(document.querySelector(".outcomes a[href*=%s]").closest("tr").querySelector("td").innerText)`, outcome)
}
