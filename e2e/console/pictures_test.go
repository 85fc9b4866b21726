package console_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"retry-worker/internal/testkit"
)

const (
	pictureFolder = "../../docs/pictures"
	// shownFile holds what the pictures show, as a hash of the words and the styles.
	shownFile       = "testdata/pictures.sha256"
	maxPictureBytes = 300_000
)

// picture of one page for docs/console.md.
type picture struct {
	name, path, language string
	dark                 bool
	width, height        int64
}

var pictures = []picture{
	{"console-overview.png", "/", "pt-BR", false, 1240, 868},
	{"console-dead-letters.png", "/dead-letters", "pt-BR", false, 1240, 820},
	{"console-destination.png", "/destinations/" + samplePortal, "pt-BR", false, 1240, 1000},
	{"console-claim.png", subject(sampleClaim), "en", true, 1240, 1080},
}

// stopped is a browser whose clock stands, and whose pages do not look for news.
func (b *tab) stopped() {
	b.t.Helper()
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: fmt.Sprintf("Date.now = () => %d; window.setTimeout = () => 0;", sampleNow.UnixMilli()),
	})
}

// TestPicturesShowThePagesAsTheyAre keeps the pictures of docs/console.md: of a real journal with a sample day, whose clock stands.
func TestPicturesShowThePagesAsTheyAre(t *testing.T) {
	shared.startBrowser(t)
	s := newSample(t, sampleNow)
	s.day()
	address := s.serve()
	words := sha256.New()
	for _, p := range pictures {
		b := shared.visitAt(t, address, p.language)
		b.stopped()
		b.dark(p.dark)
		b.do(chromedp.EmulateViewport(p.width, p.height))
		b.open(p.path)
		b.await("the page with its styles", `document.readyState === "complete"`)
		shown := eval[string](b, `document.body.innerText + [...document.querySelectorAll("link[rel=stylesheet]")].map(e => e.getAttribute("href"))`)
		fmt.Fprintf(words, "%+v %s\n", p, strings.Join(strings.Fields(shown), " "))
		if *update {
			p.draw(t, b)
		}
		p.check(t)
	}
	sum := hex.EncodeToString(words.Sum(nil)) + "\n"
	if *update {
		testkit.Must(t, os.WriteFile(shownFile, []byte(sum), 0o644))
	}
	if kept, err := os.ReadFile(shownFile); err != nil || string(kept) != sum {
		t.Errorf("docs/pictures/console-*.png show older pages (%v); draw them anew and look at them: go test ./e2e/console -run Pictures -update", err)
	}
}

func (p *picture) draw(t *testing.T, b *tab) {
	t.Helper()
	content := call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng})
	testkit.Must(t, os.WriteFile(filepath.Join(pictureFolder, p.name), content.Data, 0o644))
}

// check that the picture is there, of its size, not too heavy, and in docs/console.md.
func (p *picture) check(t *testing.T) {
	t.Helper()
	content := testkit.Read(t, filepath.Join(pictureFolder, p.name))
	size, err := png.DecodeConfig(strings.NewReader(content))
	testkit.Must(t, err)
	if int64(size.Width) != p.width || int64(size.Height) != p.height || len(content) > maxPictureBytes {
		t.Errorf("%s is %d × %d in %d bytes, expected %d × %d in at most %d", p.name, size.Width, size.Height, len(content), p.width, p.height, maxPictureBytes)
	}
	if !strings.Contains(testkit.Read(t, "../../docs/console.md"), "pictures/"+p.name) {
		t.Errorf("docs/console.md does not show %s", p.name)
	}
}
