package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// tab is one visitor's browser window, with cookies of its own. Whatever a page does that it must not, fails the test:
// a dialog, an error in the console (what the Content-Security-Policy blocks is one), a request beyond the worker.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu       sync.Mutex
	problems []string
	sent     []string // requests, "POST /dead-letters/…" say
}

// visit opens a window on the worker; language is the browser's, as Accept-Language has it.
func (s *fixture) visit(t *testing.T, language string) *tab {
	t.Helper()
	return s.visitAt(t, "http://"+s.worker.API, language)
}

func (s *fixture) visitAt(t *testing.T, base, language string) *tab {
	t.Helper()
	b := &tab{t: t, base: base}
	ctx, cancel := chromedp.NewContext(s.root, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.hear))
	t.Cleanup(cancel)
	b.ctx = ctx
	testkit.Must(t, chromedp.Do(ctx)) // the tab lives as long as the context of its first action
	b.do(chromedp.EmulateViewport(1280, 900))
	version := call(b, browser.GetVersion, cdp.Empty{})
	call(b, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: version.UserAgent, AcceptLanguage: language})
	call(b, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}) // others have windows too
	t.Cleanup(b.judge)
	return b
}

// call sends one command of the protocol to the tab.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, wait.Limit)
	defer cancel()
	result, err := chromedp.Call(ctx, command, params)
	if err != nil {
		b.t.Fatalf("the browser: %s: %v", command.Method, err)
	}
	return result
}

// hear notes what happens in the tab; it must not call back.
func (b *tab) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.wrong("exception: %s", shown(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		b.wrong("console.%s: %s", e.Type, shown(e.Args))
	case *log.EventEntryAdded:
		// A page that is refused with 4xx is an entry too; whether it should be, the tests say.
		refused := e.Entry.Source == log.EntrySourceNetwork && strings.Contains(e.Entry.Text, "status of 4")
		if !refused && e.Entry.Level != log.EntryLevelVerbose &&
			e.Entry.Level != log.EntryLevelInfo { // as that a field was too late to get the focus
			b.wrong("%s %s: %s", e.Entry.Source, e.Entry.Level, e.Entry.Text)
		}
	case *page.EventJavascriptDialogOpening:
		b.wrong("dialog: %s", e.Message)
		go func() {
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{}) // the tab may be gone
		}()
	case *network.EventRequestWillBeSent:
		b.request(e.Request.Method, e.Request.URL)
	}
}

func (b *tab) request(method, address string) {
	if strings.HasPrefix(address, "data:") {
		return // the browser's own, of a date field; it goes nowhere
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme+"://"+u.Host != b.base {
		b.wrong("request beyond the worker: %s %.200s", method, address)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = append(b.sent, method+" "+u.RequestURI())
}

func (b *tab) wrong(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, fmt.Sprintf(format, args...))
}

// judge fails the test with what went wrong in the tab.
func (b *tab) judge() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		b.t.Errorf("the page did what it must not: %s", p)
	}
	if b.t.Failed() {
		const most = 30
		b.t.Logf("the last requests: %q", b.sent[max(0, len(b.sent)-most):])
	}
}

// posts are how often something was sent.
func (b *tab) posts() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, s := range b.sent {
		if strings.HasPrefix(s, "POST ") {
			n++
		}
	}
	return n
}

func shown(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%.600s", text)
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, wait.Limit)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("the browser: %v; the page is %s", err, b.where())
	}
}

// where the tab is, and what it shows.
func (b *tab) where() string {
	ctx, cancel := context.WithTimeout(b.ctx, wait.Limit)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText.slice(0, 3000)`))
	if err != nil {
		return err.Error()
	}
	return text
}

// open goes to a path of the worker.
func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.base + path))
}

// click on the first element that a selector finds, where it stands.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// write into a field, key by key.
func (b *tab) write(selector, text string) {
	b.t.Helper()
	b.do(chromedp.SendKeys(chromedp.CSS(selector), text, chromedp.NodeVisible))
}

// choose a value of a select.
func (b *tab) choose(selector, value string) {
	b.t.Helper()
	b.do(chromedp.SetValue(chromedp.CSS(selector), value))
}

// eval is the value of an expression on the page.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, wait.Limit)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("evaluate %.200s: %v; the page is %s", expression, err, b.where())
	}
	return v
}

// text of the first element that a selector finds; empty where there is none.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf(`(document.querySelector(%q)?.innerText ?? "")`, selector))
}

// count of the elements that a selector finds.
func (b *tab) count(selector string) int {
	b.t.Helper()
	return eval[int](b, fmt.Sprintf(`document.querySelectorAll(%q).length`, selector))
}

// await waits until an expression is true on a page that is loaded, across navigations.
func (b *tab) await(what, expression string) {
	b.t.Helper()
	var err error
	wait.Until(b.t, what, func() (ok bool) {
		ctx, cancel := context.WithTimeout(b.ctx, wait.Limit)
		defer cancel()
		ok, err = chromedp.Run(ctx, chromedp.Evaluate[bool](`document.readyState === "complete" && !!(`+expression+")"))
		return err == nil && ok // not while a page is just being left
	}, b.where, func() string { return fmt.Sprint(err) })
}

// quoted is a text as JavaScript has it.
func quoted(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string can be marshalled
	}
	return string(text)
}

// says fails the test where an element lacks one of the texts.
func (b *tab) says(selector string, wants ...string) {
	b.t.Helper()
	text := b.text(selector)
	for _, want := range wants {
		if !strings.Contains(text, want) {
			b.t.Errorf("%s lacks %q; it says:\n%s", selector, want, text)
		}
	}
}

// dark sets what the reader's system prefers.
func (b *tab) dark(on bool) {
	b.t.Helper()
	value := "light"
	if on {
		value = "dark"
	}
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	})
}

// withoutScript is a browser that runs none of the page's scripts.
func (b *tab) withoutScript() {
	b.t.Helper()
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

// fill gives a field a value in place of the one it has.
func (b *tab) fill(selector, value string) {
	b.t.Helper()
	eval[int](b, fmt.Sprintf(`(document.querySelector(%q).value = %s, 1)`, selector, quoted(value)))
}
