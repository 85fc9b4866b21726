package console_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/engine"
	"retry-worker/internal/decision"
	"retry-worker/internal/store"
	"retry-worker/internal/testkit"
)

// axe is the source of the accessibility rules, which `make models` fetches; nil where it was not asked to yet.
var axe = sync.OnceValue(func() []byte {
	source, _ := os.ReadFile("../../scripts/models/node_modules/axe-core/axe.min.js")
	return source
})

// violation of one rule on a page.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct {
		Target  []any
		Summary string `json:"failureSummary"`
	}
}

// rules that pages must keep: WCAG 2.2 to AA, and what its authors call good practice.
const axeRun = `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa", "best-practice"], resultTypes: ["violations"]}).then(r => r.violations)`

// accessible fails the test with what the page as it stands does to people who cannot see, hear or point, where the rules
// were fetched.
func (b *tab) accessible(where string) {
	b.t.Helper()
	if axe() == nil {
		return
	}
	eval[bool](b, string(axe())+"\n;true")
	for _, v := range eval[[]violation](b, axeRun) {
		text := fmt.Sprintf("%s: %s (%s): %s", where, v.ID, v.Impact, v.Help)
		for i, n := range v.Nodes {
			if i == 5 {
				text += fmt.Sprintf("\n  and %d more", len(v.Nodes)-i)
				break
			}
			text += fmt.Sprintf("\n  %v: %s", n.Target, strings.ReplaceAll(n.Summary, "\n", " "))
		}
		b.t.Error(text)
	}
}

func needRules(t *testing.T) {
	t.Helper()
	harness.SkipIfShort(t)
	if axe() == nil {
		t.Fatal("the rules are not there; run: make models")
	}
}

func TestEveryPageIsAccessible(t *testing.T) {
	needRules(t)
	s := open(t)
	const claimID = "CLM-E2E-AXE-1020"
	s.submit(t, claimID, 5, "HTTP 504 Gateway Timeout")
	l := s.deadLetter(t, claimID)
	for _, look := range []struct {
		width    int64
		dark     bool
		language string
	}{{1440, false, "pt-BR"}, {390, true, "en"}} {
		b := s.visit(t, look.language)
		b.dark(look.dark)
		b.sized(look.width)
		for _, path := range append(pagesOf(l), "/nowhere", "/dead-letters?state=discarded&q=nothing",
			"/dead-letters?team=faturamento&sort=deadline", "/dead-letters?state=nonsense", "/dead-letters?ids=",
			"/dead-letters/groups?state=nonsense", "/bulk-runs/new?q="+claimID) {
			b.open(path)
			b.unfold()
			b.accessible(fmt.Sprintf("%s, %+v", path, look))
		}
		b.open(subject(claimID)) // with what stands beside a form that was refused
		b.unfold()
		b.write("#discard-reason", " ")
		b.click("#discard button[type=submit]")
		b.await("the refusal", `document.querySelector("#wrong")`)
		b.unfold()
		b.accessible(fmt.Sprintf("a refusal, %+v", look))
		b.write("#discard-reason", "Paga à vista.")
		b.click("#discard button[type=submit]")
		b.await("a discard that waits", `document.querySelector("#later")`)
		b.accessible(fmt.Sprintf("a discard that waits, %+v", look))
		b.click("#later button")
		b.await("the forms", `!document.querySelector("#later") && document.querySelector("#retry")`)
		b.click("#take button")
		b.await("a claim that is the reader's", `document.querySelector("#take [value=nobody]")`)
		b.click("#pass summary")
		b.write("#assign-text", "Operadora responde na quarta.")
		b.click("#assign button")
		b.await("what was noted with that", `document.querySelector("#assigned blockquote")`)
		b.unfold()
		b.accessible(fmt.Sprintf("a claim that is the reader's, %+v", look))
		b.open("/dead-letters?assignee=me&q=" + claimID)
		b.accessible(fmt.Sprintf("what the reader has, %+v", look))
		b.open(subject(claimID))
		b.click("#take [value=nobody]")
		b.await("a claim that is nobody's", `!document.querySelector("#take [value=nobody]")`)
		b.open("/dead-letters?q=" + claimID)
		b.click("[name=ids]")
		b.do(chromedp.KeyEvent("?"))
		b.await("the keys", `document.querySelector("#keys").open`)
		b.accessible(fmt.Sprintf("a row that is ticked, and the keys, %+v", look))
	}
}

// unfold opens what a reader can open.
func (b *tab) unfold() {
	b.t.Helper()
	eval[int](b, `(document.querySelectorAll("details").forEach(d => d.open = true), 1)`)
}

// TestTheLogInIsAccessible also sees to the page that nobody may leave out.
func TestTheLogInIsAccessible(t *testing.T) {
	needRules(t)
	b := guarded(t).visit(t, "en")
	for _, dark := range []bool{false, true} {
		b.dark(dark)
		b.open("/login")
		b.accessible(fmt.Sprintf("/login, dark %v", dark))
	}
}

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
