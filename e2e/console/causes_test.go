package console_test

import (
	"context"
	"fmt"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/engine"
	"retry-worker/internal/decision"
	"retry-worker/internal/store"
	"retry-worker/internal/testkit"
)

// TestNewCausesAndAdviceAreAccessible: a cause that is new and that retries never help is on the overview, and an admin teaches it from
// the page of a claim, with one click or key; all of it keeps the rules and fits a phone.
func TestNewCausesAndAdviceAreAccessible(t *testing.T) {
	needRules(t)
	s := guarded(t) // for its browser
	folder := t.TempDir()
	kept, err := store.Open(t.Context(), harness.Database(folder))
	testkit.Must(t, err)
	t.Run("a journal", func(t *testing.T) { // which ends with it
		f := testkit.New(t, testkit.Over(kept))
		for i := range 41 {
			id := fmt.Sprintf("CLM-CAUSE-%d", i)
			f.Fail(decision.DefaultPolicy, id, "setor 7 aguarda o auditor de uma operadora que tem um nome comprido", 4)
			f.Fail(decision.DefaultPolicy, id, "setor 7 aguarda o auditor de uma operadora que tem um nome comprido", 5)
		}
	})
	testkit.Must(t, kept.Close())
	e, err := engine.Start(t.Context())
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, e.Stop(context.Background())) })
	w := harness.StartWorker(t, harness.Binary(t), harness.Settings(e.GatewayAddress(), folder))
	const advised, teaches = `form[action$="/teach"] button`, `document.querySelector('form[action$="/teach"] button')`
	for _, look := range []struct {
		width    int64
		dark     bool
		language string
	}{{1440, false, "pt-BR"}, {390, true, "en"}} {
		b := s.visitAt(t, "http://"+w.API, look.language)
		b.dark(look.dark)
		b.sized(look.width)
		fits := func(what string) {
			b.fits(what, look.width)
			b.accessible(fmt.Sprintf("%s, %+v", what, look))
		}
		b.open("/")
		b.await("the new cause", `document.querySelector("#new-causes a")`)
		fits("new causes")
		b.click("#new-causes a")
		b.await("its page", `location.pathname.startsWith("/causes/") && `+teaches)
		fits("a new cause")
		b.open(subject("CLM-CAUSE-7"))
		b.await("the advice", teaches)
		fits("advice on a claim")
		if look.width < phone {
			b.click(advised)
			b.await("what is taught", `location.pathname.startsWith("/causes/") && !document.querySelector(".notice.warn form")`)
		}
	}
}
