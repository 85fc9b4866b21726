package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"retry-worker/internal/testkit/wait"
)

// inSight tells which of the selectors' first elements are not whole on the screen, or lie under what is fixed there.
const inSight = `(%s).filter(q => { const e = document.querySelector(q), r = e?.getBoundingClientRect();
  return !r || r.top < 0 || r.bottom > innerHeight || !e.contains(document.elementFromPoint(r.left + 4, r.top + r.height / 2)) })
  .map(q => q + " " + JSON.stringify(document.querySelector(q)?.getBoundingClientRect()))`

// TestTheClaimStaysInSight wherever its form is filled in, on a screen and on a phone.
func TestTheClaimStaysInSight(t *testing.T) {
	s := open(t)
	const claimID = "CLM-E2E-SIGHT-1101"
	s.submit(t, claimID, 0, "INVALID_PATIENT_DATA: "+strings.Repeat("a carteira não confere com o cadastro da operadora, ", 8))
	s.deadLetter(t, claimID)
	b := s.visit(t, "pt-BR")
	for _, width := range []int64{1440, 390} {
		b.sized(width)
		b.open("/dead-letters?q=" + claimID)
		b.click(".row-link")
		b.await("the claim", `document.querySelector("#retry")`)
		b.unfold()
		for _, field := range []string{"#retry-reason", "#retry button.primary", "#discard-reason", "#comment-text"} {
			eval[int](b, fmt.Sprintf(`(document.querySelector(%q).focus(), document.activeElement.scrollIntoView({block: "nearest"}), 1)`, field))
			if hidden := eval[[]string](b, fmt.Sprintf(inSight, fmt.Sprintf(`["h1.id", "#claim-head .error-line", %q]`, field))); len(hidden) > 0 {
				t.Errorf("at %d px, in %s, these are out of sight: %q", width, field, hidden)
			}
		}
	}
}

// TestAListIsDense: its first row is on the screen's first third, rows take little, and the keyboard loses none under the bar.
func TestAListIsDense(t *testing.T) {
	s := open(t)
	for i := range 25 {
		s.submit(t, fmt.Sprintf("CLM-E2E-DENSE-%02d", i), 0, "AUTHORIZATION_DENIED: "+strings.Repeat("senha vencida ", 20))
	}
	for i := range 25 {
		s.deadLetter(t, fmt.Sprintf("CLM-E2E-DENSE-%02d", i))
	}
	b := s.visit(t, "pt-BR")
	b.sized(1440)
	b.open("/dead-letters?q=CLM-E2E-DENSE")
	b.await("the rows", `document.querySelectorAll(".row-link").length === 25`)
	if y := eval[float64](b, `document.querySelector("#rows tbody tr").getBoundingClientRect().top`); y > 320 {
		t.Errorf("the first row is at %.0f px", y)
	}
	if h := eval[float64](b, `Math.max(...[...document.querySelectorAll("#rows tbody tr")].map(e => e.getBoundingClientRect().height))`); h > 72 {
		t.Errorf("a row takes %.0f px", h)
	}
	if !eval[bool](b, `document.querySelector("#chosen-go").disabled`) {
		t.Error("nothing is chosen, and the button can be pressed")
	}
	b.click("[name=ids]")
	b.await("the button", `!document.querySelector("#chosen-go").disabled`)
	eval[int](b, `(document.querySelector(".row-link").focus(), 1)`)
	for i := range 25 {
		if hidden := eval[[]string](b, fmt.Sprintf(inSight, `[".row-link:focus"]`)); len(hidden) > 0 {
			t.Errorf("row %d is under the bar", i)
			break
		}
		b.do(chromedp.KeyEvent("j"))
	}
}

// TestWhatIsWrittenStays when the session ends, and when a colleague decides meanwhile.
func TestWhatIsWrittenStays(t *testing.T) {
	s := guarded(t)
	const claimID, written = "CLM-E2E-STAYS-1102", "Liguei para a operadora."
	s.submit(t, claimID, 0, denied)
	l := s.deadLetter(t, claimID)
	b, colleague := s.visit(t, "pt-BR"), s.visit(t, "pt-BR")
	logIn := func(b *tab, role string) {
		b.open("/login?next=" + subject(claimID))
		b.write("#token", s.tokens[role])
		b.do(chromedp.KeyEvent(kb.Enter))
		b.await("the claim", `document.querySelector("#retry")`)
	}
	logIn(b, "operator")
	b.write("#retry-reason", written)
	eval[int](b, `fetch("/logout", {method: "POST", body: new URLSearchParams({form_token: document.querySelector("[name=form_token]").value}), redirect: "manual"}).then(() => 1)`)
	b.await("the log-in in the page", `document.querySelector("#login-again").open`)
	b.accessible("the log-in in the page")
	b.write("#token-again", s.tokens["operator"])
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await("the page", `!document.querySelector("#login-again").open && document.querySelector("#live").dataset.state === "on"`)
	if got := eval[string](b, `document.querySelector("#retry-reason").value`); got != written {
		t.Errorf("the reason is %q", got)
	}
	logIn(colleague, "admin")
	colleague.write("#retry-reason", "Corrigido.")
	colleague.click("#retry button.primary")
	colleague.await("what can be undone", `document.querySelector("#later")`)
	b.await("word of it", `document.querySelector("#live-text").innerText.includes("Outra pessoa já decidiu")`)
	b.says("#decision-state", "test.admin mandou reenviar")
	if got := eval[string](b, `document.querySelector("#retry-reason").value`); got != written {
		t.Errorf("then the reason is %q", got)
	}
	b.click("#retry button.primary") // it still works: the page has the new session's form token
	b.await("the refusal", `document.querySelector("#wrong")?.innerText.includes("Nada foi feito")`)
	wait.Until(t, "the first decision", func() bool {
		now := s.find(t, claimID)
		return now.ID == l.ID && now.Review != nil && now.Review.By == "test.admin"
	})
}
