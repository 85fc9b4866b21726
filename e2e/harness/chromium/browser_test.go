package chromium

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit/wait"
)

func TestMain(m *testing.M) { harness.Main(m) }

func TestItShowsPagesOfThisMachineOnly(t *testing.T) {
	b, err := Start(wait.Context(t), Require(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<title>ours</title>")) }))
	defer page.Close()
	allocator, cancel := remote.NewAllocator(wait.Context(t), b.URL(), remote.NoModifyURL)
	defer cancel()
	tab, cancel := chromedp.NewContext(allocator)
	defer cancel()
	if err := chromedp.Do(tab, chromedp.Navigate(page.URL)); err != nil {
		t.Fatal(err)
	}
	if title, err := chromedp.Run(tab, chromedp.Title()); err != nil || title != "ours" {
		t.Errorf("the title is %q (%v)", title, err)
	}
	if err := chromedp.Do(tab, chromedp.Navigate("http://example.com/")); err == nil || !strings.Contains(err.Error(), "ERR_NAME_NOT_RESOLVED") {
		t.Errorf("an address beyond this machine says %v", err)
	}
	if err := b.Stop(wait.Context(t)); err != nil {
		t.Error(err)
	}
	if left := harness.RunningIn(b.folder.Path); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}
