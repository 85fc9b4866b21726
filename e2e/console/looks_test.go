package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"retry-worker/internal/testkit/wait"
)

// pagesOf are all pages, with those of a dead letter's claim and cause.
func pagesOf(l *deadLetter) []string {
	claimID := l.Subject.ID
	return []string{"/", "/causes/" + *l.Fingerprint, "/dead-letters", "/dead-letters?state=all", "/dead-letters/groups", "/bulk-runs", "/bulk-runs/new", subject(claimID), "/destinations", "/destinations/" + claimID, "/policies", "/audit", "/audit?policy=tiss-submission&id=" + claimID}
}

// phone is the width below which the screen is taken for one that is touched.
const phone = 600

// sized makes the window so wide, in CSS pixels; a narrow one is a phone's.
func (b *tab) sized(width int64) {
	b.t.Helper()
	if width < phone {
		b.do(chromedp.EmulateViewport(width, 740, chromedp.EmulateMobile, chromedp.EmulateTouch))
		return
	}
	b.do(chromedp.EmulateViewport(width, 900))
}

// tooSmall are the targets that WCAG 2.5.8 forbids: less than 24 px in a direction, not in a line of text, and with
// another target within 24 px around their middle.
const tooSmall = `(() => {
  const seen = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")].filter(e => e.checkVisibility() && e.getBoundingClientRect().width > 1);
  const box = e => (e.closest("label.choice") ?? e).getBoundingClientRect();
  const inText = e => getComputedStyle(e).display === "inline" && [...e.parentElement.childNodes].some(n => n.nodeType === 3 && n.textContent.trim() !== "");
  const near = (r, o) => {
    const x = r.left + r.width / 2, y = r.top + r.height / 2;
    const dx = Math.max(o.left - x, 0, x - o.right), dy = Math.max(o.top - y, 0, y - o.bottom);
    return Math.hypot(dx, dy) < 12;
  };
  return seen.filter(e => {
    const r = box(e);
    return (r.width < 24 || r.height < 24) && !inText(e) && seen.some(o => o !== e && !o.contains(e) && near(r, box(o)));
  }).map(e => e.outerHTML.slice(0, 120) + " " + JSON.stringify(box(e)));
})()`

// TestEveryPageFits a phone, and every width up to a screen's; at 320 px it is a page at 400 %, at 705 one at 200 %.
func TestEveryPageFits(t *testing.T) {
	s := open(t)
	const claimID = "CLM-E2E-A-RATHER-LONG-IDENTIFIER-OF-A-CLAIM-THAT-SOME-SYSTEM-MAKES-1030"
	s.submit(t, claimID, 5, "HTTP 503 Service Unavailable em https://portal.example.org/tiss/lotes/"+fmt.Sprintf("%0200d", 7))
	l := s.deadLetter(t, claimID)
	b := s.visit(t, "pt-BR")
	for _, path := range append(pagesOf(l), "/nowhere") {
		b.open(path)
		b.unfold()
		b.fits(path, 1440, 1112, 820, 737, 705, 320, 360)
	}
}

// fits fails the test where the page is wider than screens so wide, or has targets that a finger misses on a phone.
func (b *tab) fits(what string, widths ...int64) {
	b.t.Helper()
	for _, width := range widths {
		b.sized(width)
		if over := eval[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
			b.t.Errorf("%s is %d px wider than a screen of %d: %v", what, over, width,
				eval[[]string](b, `[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll")).slice(0, 5).map(e => e.outerHTML.slice(0, 120))`))
		}
		if small := eval[[]string](b, tooSmall); width < phone && len(small) > 0 {
			b.t.Errorf("%s has targets that a finger misses: %q", what, small)
		}
	}
}

func TestThePagesFollowTheSystemsLightAndDark(t *testing.T) {
	s := open(t)
	b := s.visit(t, "pt-BR")
	brightness := map[bool]float64{}
	for _, dark := range []bool{false, true} {
		b.dark(dark)
		b.open("/")
		brightness[dark] = eval[float64](b, `(() => { const c = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
			c.fillStyle = getComputedStyle(document.body).backgroundColor; c.fillRect(0, 0, 1, 1);
			const [r, g, b] = c.getImageData(0, 0, 1, 1).data; return (r + g + b) / 765 })()`)
	}
	if brightness[false] < 0.8 || brightness[true] > 0.3 {
		t.Errorf("the background's brightness is %.2f in light and %.2f in dark", brightness[false], brightness[true])
	}
}

// focused is where the keyboard is, and whether a person sees it.
type focused struct {
	ID, Href, Tag, Value, Type string
	Seen                       bool
}

const focusNow = `(() => { const e = document.activeElement, s = getComputedStyle(e), r = e.getBoundingClientRect();
  const ring = s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2;
  return {id: e.id, href: e.getAttribute("href") ?? "", tag: e.tagName, value: e.value ?? "", type: e.type ?? "",
    seen: (ring || e.classList.contains("skip")) && r.width > 0 && r.bottom > 0 && r.top < innerHeight} })()`

// TestTheKeyboardAloneDoes: from the log-in to a decided case with twelve keys at most, with a script and without one.
func TestTheKeyboardAloneDoes(t *testing.T) {
	s := guarded(t)
	for claimID, script := range map[string]bool{"CLM-E2E-KEYS-1031": true, "CLM-E2E-KEYS-1032": false} {
		s.submit(t, claimID, 0, denied)
		s.deadLetter(t, claimID)
		b := s.visit(t, "pt-BR")
		if !script {
			b.withoutScript()
		}
		keys := 0
		press := func(key, what, then string) {
			b.do(chromedp.KeyEvent(key))
			keys++
			b.await(what, then)
			if f := eval[focused](b, focusNow); f.Tag != "BODY" && !f.Seen && f.ID != "decision" && f.ID != "rows" {
				t.Errorf("%s: the focus is not seen on %+v", what, f)
			}
		}
		at := func(selector string) string { return "document.activeElement.matches(" + quoted(selector) + ")" }
		b.open("/dead-letters?q=" + claimID) // as a link leads there
		b.await("the log-in form", at("#token"))
		press(s.tokens["operator"], "a token", "true") // pasted
		press(kb.Enter, "the list", `document.querySelector(".row-link")`)
		press(kb.Tab, "the way past the navigation", at(`.skip[href="#main"]`))
		press(kb.Tab, "the way to the rows", at(`.skip[href="#rows"]`))
		press(kb.Enter, "the rows", at("#rows"))
		press(kb.Tab, "the first row", at("#rows tbody *"))
		if eval[bool](b, at("[type=checkbox]")) {
			press(kb.Tab, "the row's link", at(".row-link"))
		}
		press(kb.Enter, "the claim's page", `location.pathname.startsWith("/subjects/") && `+at("#decision"))
		press(kb.Tab, "the reason", at("#retry-reason"))
		press("Corrigido, sem mouse.", "a reason", "true")
		press(kb.Tab, "the button", at("#retry button"))
		b.do(chromedp.KeyEvent(kb.Enter))
		b.await("what can be undone", `document.querySelector("#later")`)
		if keys++; keys > 12 {
			t.Errorf("it took %d keys, expected at most 12", keys)
		}
		b.says("#later", "test.operator mandou reenviar")
		if !script {
			if b.count("#live:not([hidden])") != 0 {
				t.Error("the page claims to be kept up to date, without a script")
			}
			b.click("#later button")
			b.await("the form again", `document.querySelector("#retry")`)
		}
	}
}

// TestAMorning: thirty cases of five causes, decided one by one: with 40 clicks at most, or by the keyboard alone with 150 keys.
func TestAMorning(t *testing.T) {
	s := open(t)
	const cases = 30
	causes := []string{"AUTHORIZATION_DENIED: senha %d vencida", "DUPLICATE_CLAIM: lote %d", "INVALID_PATIENT_DATA: campo %d", "INSURANCE_EXPIRED: plano %d", "LoginInvalido: usuário %d"}
	for prefix, most := range map[string]int{"CLM-E2E-MOUSE": 40, "CLM-E2E-MORNING-KEYS": 150} {
		causeOf := map[string]int{}
		for i := range cases {
			id := fmt.Sprintf("%s-%02d", prefix, i)
			causeOf[id] = i % len(causes)
			s.submit(t, id, 0, fmt.Sprintf(causes[i%len(causes)], i))
		}
		for id := range causeOf {
			s.deadLetter(t, id)
		}
		b, moves := s.visit(t, "pt-BR"), 0
		click := func(selector string) {
			b.click(selector)
			moves++
		}
		press := func(keys ...string) {
			for _, key := range keys {
				b.do(chromedp.KeyEvent(key)) // a text is pasted
				moves++
			}
		}
		b.open("/dead-letters?q=" + prefix)
		if most > 100 {
			press(kb.Tab, kb.Tab, kb.Enter, kb.Tab, kb.Tab, kb.Enter)
		} else {
			click(".row-link")
		}
		for n := range cases {
			b.await("the next case", `location.hash === "#decision" && document.querySelector("#retry")`+
				fmt.Sprintf(` && (%d === 0 || document.querySelector("#just-decided .notice"))`, n))
			reason := fmt.Sprintf("Corrigido, causa %d.", causeOf[b.text("h1.id")])
			eval[int](b, `(window.before = 1)`)
			chip := eval[int](b, `[...document.querySelectorAll("#retry .chip")].findIndex(e => e.value === `+quoted(reason)+`) + 1`)
			switch {
			case most > 100 && chip > 0:
				press(fmt.Sprint(chip), kb.Enter)
			case most > 100:
				press("r")
				b.fill("#retry-reason", "") // chromedp sends the letter by itself, which a page cannot prevent then
				press(reason, kb.Tab, kb.Enter)
			case chip > 0:
				click(`#retry .chip[value=` + quoted(reason) + `]`)
			default:
				click("#retry-reason")
				b.do(chromedp.KeyEvent(reason))
				click("#retry button.primary")
			}
			b.await("another page", `!window.before`)
		}
		if moves > most {
			t.Errorf("it took %d, expected at most %d", moves, most)
		}
		for id, cause := range causeOf {
			var l *deadLetter
			wait.Until(t, "the decision on "+id, func() bool { l = s.find(t, id); return l.State != "open" })
			if l.Review.Reason != fmt.Sprintf("Corrigido, causa %d.", cause) {
				t.Errorf("%s is %s, %+v", id, l.State, l.Review)
			}
		}
	}
}

func TestArrowsMoveBetweenTheRowsOfAList(t *testing.T) {
	s := open(t)
	for _, id := range []string{"CLM-E2E-ARROW-1032", "CLM-E2E-ARROW-1033"} {
		s.submit(t, id, 0, denied)
		s.deadLetter(t, id)
	}
	b := s.visit(t, "pt-BR")
	b.open("/dead-letters?q=CLM-E2E-ARROW")
	eval[int](b, `(document.querySelector(".row-link").focus(), 1)`)
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	if f := eval[focused](b, focusNow); !strings.HasPrefix(f.Href, subject("CLM-E2E-ARROW-1033")) || !f.Seen {
		t.Errorf("the arrow leads to %+v, expected the second row", f)
	}
	b.do(chromedp.KeyEvent(kb.Home))
	if f := eval[focused](b, focusNow); !strings.HasPrefix(f.Href, subject("CLM-E2E-ARROW-1032")) {
		t.Errorf("Home leads to %+v, expected the first row", f)
	}
	b.do(chromedp.KeyEvent("x"))
	b.await("that one is chosen", `document.querySelector("#chosen-n").innerText === "1 marcada" && document.querySelector("[name=ids]:checked")`)
	b.do(chromedp.KeyEvent("?"))
	b.await("the help", `document.querySelector("#keys").open`)
	b.says("#keys", "Teclas de atalho", "Em listas: marcar ou desmarcar a linha")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.await("the page", `!document.querySelector("#keys").open`)
	b.click("#chosen button")
	b.await("the plan", `location.pathname === "/bulk-runs/new" && document.querySelector("#start")`)
	b.says("main", "Marcadas")
}
