package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// pagesOf are all pages, with those of a dead letter's claim and cause.
func pagesOf(l *deadLetter) []string {
	claimID := l.Subject.ID
	return []string{"/", "/learning", "/causes/" + l.Fingerprint, "/dead-letters", "/dead-letters?state=all", "/dead-letters/groups", "/kpis", "/bulk-runs", "/bulk-runs/new", subject(claimID), "/destinations", "/destinations/" + claimID, "/policies", "/audit", "/audit?policy=tiss-submission&id=" + claimID}
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
		for _, width := range []int64{1440, 1112, 820, 737, 705, 320, 360} {
			b.sized(width)
			over := eval[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`)
			if over > 0 {
				t.Errorf("%s is %d px wider than a screen of %d: %v", path, over, width,
					eval[[]string](b, `[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll")).slice(0, 5).map(e => e.outerHTML.slice(0, 120))`))
			}
		}
		if small := eval[[]string](b, tooSmall); len(small) > 0 {
			t.Errorf("%s has targets that a finger misses: %q", path, small)
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

// tabTo presses Tab until the keyboard is where it is wanted. All on the way must be seen.
func (b *tab) tabTo(what string, there func(focused) bool) {
	b.t.Helper()
	const most = 120
	for range most {
		b.do(chromedp.KeyEvent(kb.Tab))
		f := eval[focused](b, focusNow)
		if f.Tag == "BODY" {
			continue // around the window
		}
		if !f.Seen {
			b.t.Errorf("on the way to %s the focus is not seen on %+v", what, f)
		}
		if there(f) {
			return
		}
	}
	b.t.Fatalf("%s is not reached by %d Tabs", what, most)
}

func TestTheKeyboardAloneDoes(t *testing.T) {
	s := open(t)
	const claimID = "CLM-E2E-KEYS-1031"
	process := s.submit(t, claimID, 0, denied)
	s.deadLetter(t, claimID)
	b := s.visit(t, "pt-BR")
	b.open("/")
	b.do(chromedp.KeyEvent(kb.Tab))
	if f := eval[focused](b, focusNow); f.Href != "#main" || !f.Seen {
		t.Errorf("the first Tab is on %+v, expected the way past the navigation, seen", f)
	}
	b.tabTo("the list", func(f focused) bool { return f.Href == "/dead-letters" })
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await("the list", `document.querySelector(".row-link")`)
	b.tabTo("the search", func(f focused) bool { return f.ID == "q" })
	b.do(chromedp.KeyEvent(claimID), chromedp.KeyEvent(kb.Enter))
	b.await("the one row", `document.querySelectorAll(".row-link").length === 1`)
	b.tabTo("the claim", func(f focused) bool { return strings.HasPrefix(f.Href, subject(claimID)) })
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await("the claim's page", `location.pathname.startsWith("/subjects/")`)
	b.tabTo("the reason", func(f focused) bool { return f.ID == "retry-reason" })
	b.do(chromedp.KeyEvent("Corrigido, sem mouse."))
	b.tabTo("the time", func(f focused) bool { return f.Type == "radio" && f.Value == "backoff" })
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	if f := eval[focused](b, focusNow); f.Value != "now" || !f.Seen {
		t.Errorf("the arrow leads to %+v, expected the choice now", f)
	}
	b.tabTo("the button", func(f focused) bool { return f.Tag == "BUTTON" && f.Type == "submit" })
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await("the result", `document.querySelector("#decision .notice.ok")`)
	if at := eval[focused](b, focusNow); at.ID != "decision" {
		t.Errorf("after the decision the keyboard is at %+v, expected where its result stands", at)
	}
	if result := process.ended(t); result["reviewReason"] != "Corrigido, sem mouse." {
		t.Errorf("the process was told %v", result["reviewReason"])
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
	b.tabTo("the first row", func(f focused) bool { return strings.HasPrefix(f.Href, subject("CLM-E2E-ARROW-1033")) })
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	if f := eval[focused](b, focusNow); !strings.HasPrefix(f.Href, subject("CLM-E2E-ARROW-1032")) || !f.Seen {
		t.Errorf("the arrow leads to %+v, expected the second row", f)
	}
	b.do(chromedp.KeyEvent(kb.Home))
	if f := eval[focused](b, focusNow); !strings.HasPrefix(f.Href, subject("CLM-E2E-ARROW-1033")) {
		t.Errorf("Home leads to %+v, expected the first row", f)
	}
}
