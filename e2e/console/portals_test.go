package console_test

import "testing"

// TestAPortalIsHeldAndReleased: a person holds a portal, sees a claim come to wait without a reload, and lets it go.
func TestAPortalIsHeldAndReleased(t *testing.T) {
	s := open(t)
	const claimID = "CLM-E2E-PORTAL-1090" // and its portal's name
	s.submit(t, claimID, 0).ended(t)
	b := s.visit(t, "pt-BR")
	order := func(verb, field, value, says string) {
		t.Helper()
		b.open("/destinations/" + claimID)
		b.click("#order-" + verb + " summary")
		b.fill("#"+verb+"-"+field, value)
		b.write("#"+verb+"-reason", "combinado com a operadora")
		b.click("#order-" + verb + " button")
		b.await("what came of it", `document.querySelector("#result .notice.ok")`)
		b.says("main", says)
	}
	b.open("/destinations")
	inAnHour := eval[string](b, `new Date(Date.now() + 3600000 - new Date().getTimezoneOffset() * 60000).toISOString().slice(0, 16)`)
	order("hold", "until", inAnHour, "suspenso")

	eval[int](b, `(window.notLoadedAnew = 1)`)
	process := s.submit(t, claimID, 0)
	b.await("the claim that waits", `document.querySelector("#claims .row-link")`) // its portal, of that name, is named there before
	if eval[int](b, `window.notLoadedAnew ?? 0`) != 1 {
		t.Error("the page was loaded anew to show it")
	}
	b.unfold()
	b.accessible("a portal that is held")
	b.open(subject(claimID))
	b.says("#claim-head", "aguarda o portal")
	b.says("#standing", "Aguarda o portal "+claimID)
	b.open("/")
	b.says("#banners", "fora do ar ou suspenso")
	if n := s.portal.submissions(claimID); n != 1 {
		t.Errorf("it was submitted %d times, of which one was held", n)
	}

	order("release", "pace", "60", "As guias estão saindo")
	process.ended(t)
	b.open(subject(claimID))
	b.says("#events", "Liberada para o portal "+claimID)
	b.open("/audit")
	b.says("main", "combinado com a operadora")
}
