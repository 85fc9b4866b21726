package chromium

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"
)

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// start runs a browser until the test ends.
func start(t *testing.T, i Install) *Browser {
	t.Helper()
	b, err := Start(within(t), i, Options{Timezone: "America/Sao_Paulo"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b
}

// tab of a browser.
func tab(t *testing.T, b *Browser) context.Context {
	t.Helper()
	allocator, cancel := remote.NewAllocator(within(t), b.URL(), remote.NoModifyURL)
	t.Cleanup(cancel)
	ctx, cancelTab := chromedp.NewContext(allocator)
	t.Cleanup(cancelTab)
	return ctx
}

func TestItShowsPagesOfThisMachineOnly(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<!DOCTYPE html><h1>here</h1><script>document.title=Intl.DateTimeFormat().resolvedOptions().timeZone</script>`)
	}))
	t.Cleanup(site.Close)
	ctx := tab(t, start(t, browser))
	if err := chromedp.Do(ctx, chromedp.Navigate(site.URL)); err != nil {
		t.Fatal(err)
	}
	if heading, err := chromedp.Run(ctx, chromedp.Text("h1")); err != nil || heading != "here" {
		t.Errorf("the page says %q (%v)", heading, err)
	}
	if zone, err := chromedp.Run(ctx, chromedp.Title()); err != nil || zone != "America/Sao_Paulo" {
		t.Errorf("the browser's zone is %q (%v)", zone, err)
	}
	for _, beyond := range []string{"http://example.com/", "http://192.0.2.7/", "http://[2001:db8::1]/"} {
		err := chromedp.Do(ctx, chromedp.Navigate(beyond))
		if err == nil || !strings.Contains(err.Error(), "ERR_NAME_NOT_RESOLVED") {
			t.Errorf("%s: %v, expected that it cannot be reached at all", beyond, err)
		}
	}
}

func TestItIsNotRootAndHasASandbox(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("who runs a process is read from Linux's /proc")
	}
	b := start(t, browser)
	if why := b.Unguarded(); why != "" {
		t.Logf("no sandbox: %s", why)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.PID()))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(status, []byte("\nUid:\t0\t")) {
		t.Error("the browser runs as root")
	}
	arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", b.PID()))
	if err != nil || bytes.Contains(arguments, []byte("--no-sandbox")) != (b.Unguarded() != "") {
		t.Errorf("the sandbox is not as it is said (%q, %v): %q", b.Unguarded(), err, arguments)
	}
}

// refuses makes a browser that ends for want of a sandbox.
func refuses(t *testing.T, said string) Install {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "chromium-test-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "chromium")
	script := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *' --no-sandbox '*) exec %q \"$@\" ;; esac\necho %q >&2\nexit 1\n", browser.Path, said)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return Install{Path: path, Version: "1.0"}
}

func TestTheSandboxIsLeftOutOnlyWhereThereCanBeNone(t *testing.T) {
	b := start(t, refuses(t, "[1:1:FATAL:zygote_host_impl_linux.cc] No usable sandbox! If you are running on…"))
	if !strings.Contains(b.Unguarded(), "no sandbox") {
		t.Errorf("nothing is said of the missing sandbox: %q", b.Unguarded())
	}
	_, err := Start(within(t), refuses(t, "out of luck"), Options{})
	if err == nil || !strings.Contains(err.Error(), "out of luck") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, expected one line that ends with what it said", err)
	}
}

// left are the processes that work in a folder, by their arguments.
func left(folder string) []string {
	var found []string
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(folder)) {
			found = append(found, filepath.Base(filepath.Dir(path)))
		}
	}
	return found
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ctx := within(t); !holds(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not seen: %s", what)
		}
	}
}

func TestNothingIsLeftOfIt(t *testing.T) {
	b, err := Start(within(t), browser, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(tab(t, b), chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" && len(left(b.profile.path)) < 2 {
		t.Fatal("its processes are not seen: this test would see none that is left either")
	}
	if err := b.Stop(within(t)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(b.profile.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is left: %v", err)
	}
	eventually(t, "no process left", func() bool { return len(left(b.profile.path)) == 0 })
}

func TestItEndsWithWhoStartedIt(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a process with its parent")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleName+"=hold")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	folder := strings.TrimSpace(line)
	if err != nil || !strings.Contains(folder, profilePrefix) || len(left(folder)) == 0 {
		t.Fatalf("it said %q (%v), expected a folder with processes in it", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	eventually(t, "no process left", func() bool { return len(left(folder)) == 0 })
	aged := time.Now().Add(-2 * youngest)
	if err := os.Chtimes(filepath.Join(folder, ownerLock), aged, aged); err != nil {
		t.Fatal(err)
	}
	start(t, browser) // the next one clears up
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of a killed one is left: %v", err)
	}
}
