package console_test

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
	"retry-worker/internal/testkit"
)

// axeLock names the rules' version; npm fetches it, once, into the user's cache.
//
//go:embed axe/package.json axe/package-lock.json
var axeLock embed.FS

const (
	axeVersion = "4.14.1"
	axeFile    = "node_modules/axe-core/axe.min.js"
	// npmTime bounds the fetching.
	npmTime = 4 * time.Minute
)

// axe is the source of the accessibility rules.
var axe = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), npmTime)
	defer cancel()
	item := fetch.Item{Name: "axe-core-" + axeVersion, Proof: axeFile, Fill: fillAxe}
	dir, err := item.Provide(ctx, nil)
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(filepath.Join(dir, axeFile))
	return string(source), err
})

func fillAxe(ctx context.Context, dir string) error {
	for _, name := range []string{"package.json", "package-lock.json"} {
		content, err := axeLock.ReadFile("axe/" + name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return harness.Missing("npm is not on the PATH")
	}
	cmd := exec.CommandContext(ctx, npm, "ci", "--no-progress", "--ignore-scripts")
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	for _, far := range []string{"ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "ENOTCACHED"} {
		if strings.Contains(string(out), far) {
			return harness.Missing("the npm registry is out of reach: " + far)
		}
	}
	return fmt.Errorf("npm ci: %w: %s", err, out)
}

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

// accessible fails the test with what the page as it stands does to people who cannot see, hear or point.
func (b *tab) accessible(where string) {
	b.t.Helper()
	source, err := axe()
	testkit.Must(b.t, err)
	eval[bool](b, source+"\n;true")
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

func TestEveryPageIsAccessible(t *testing.T) {
	if _, err := axe(); err != nil {
		harness.Require(t, "axe-core", err, "apt-get install -y npm")
	}
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
		b.await("a discard that waits", `document.querySelector("#discarding")`)
		b.accessible(fmt.Sprintf("a discard that waits, %+v", look))
		b.click("#discarding button")
		b.await("the forms", `!document.querySelector("#discarding") && document.querySelector("#retry")`)
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
	if _, err := axe(); err != nil {
		t.Skip("see TestEveryPageIsAccessible: ", err)
	}
	b := guarded(t).visit(t, "en")
	for _, dark := range []bool{false, true} {
		b.dark(dark)
		b.open("/login")
		b.accessible(fmt.Sprintf("/login, dark %v", dark))
	}
}
