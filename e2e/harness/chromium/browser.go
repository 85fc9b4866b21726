// Package chromium runs a real headless Chromium that cannot leave this machine, for tests of what a browser shows.
package chromium

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
)

const (
	// startTime bounds a start, which takes 0.3 s on an idle machine.
	startTime = 60 * time.Second
	// stopTime is how long a stop may take before the browser is killed.
	stopTime = 5 * time.Second
)

// shell is Debian's package and command of a Chromium without windows: pages cost it a quarter of what they cost the
// whole browser.
const shell = "chromium-headless-shell"

// Program is a Chromium or a Chrome.
var Program = &fetch.Program{
	Name: "Chromium", Oldest: "120", Args: []string{"--version"}, Version: regexp.MustCompile(`(?:Chromium|Chrome)\D* (\d+(?:\.\d+)+)`),
	Places: []string{
		shell, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
		"/Applications/Chromium.app/Contents/MacOS/Chromium", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
	},
	Packages: []string{shell, "fonts-dejavu-core"},
}

// Browser is a running Chromium without windows. Its profile goes with it, and it reaches only 127.0.0.1. Its methods
// may be called by several goroutines.
type Browser struct {
	// URL is its address in the DevTools protocol: "ws://127.0.0.1:…". Anybody on this machine who knows it can drive
	// the browser.
	URL string
	// Unguarded is why the browser runs without its sandbox; empty if it has one.
	Unguarded string

	process *harness.Process
	folder  *harness.Folder
}

// Start starts a browser in a time zone, an IANA name, and returns when it can be driven. If this process is root,
// the browser runs as the user nobody. It lacks its sandbox only if the system allows none, as in some containers;
// Unguarded says so. No browser outlives this process. ctx bounds the start only. The error is one line that ends
// with what the browser said last; nothing is left then.
func Start(ctx context.Context, i fetch.Install, timezone string) (*Browser, error) {
	b := &Browser{}
	err := b.run(ctx, i, timezone)
	if err != nil && b.process != nil && needsNoSandbox(b.process.Lines()) {
		b.Unguarded = "this system lets Chromium have no sandbox (no user namespaces, no SUID helper)"
		err = b.run(ctx, i, timezone)
	}
	if err != nil {
		return nil, fmt.Errorf("start Chromium %s: %w", i.Version, err)
	}
	return b, nil
}

// needsNoSandbox reports whether a browser ended because it had no sandbox.
func needsNoSandbox(lines []string) bool {
	said := strings.Join(lines, "\n")
	for _, why := range []string{"No usable sandbox", "without --no-sandbox", "Failed to move to new namespace", "sandbox_host_linux", "credentials.cc"} {
		if strings.Contains(said, why) {
			return true
		}
	}
	return false
}

// run starts the browser. If it fails, it leaves nothing but the process's last words.
func (b *Browser) run(ctx context.Context, i fetch.Install, timezone string) (err error) {
	if b.folder, err = harness.NewFolder("chromium"); err != nil {
		return err
	}
	if err = errors.Join(os.Mkdir(b.folder.Join("tmp"), 0o700), harness.GiveToNobody(b.folder.Join("tmp")), harness.GiveToNobody(b.folder.Path)); err == nil {
		b.process, err = harness.StartServer(ctx, startTime, harness.Command{
			Path: i.Path, Args: b.arguments(), Env: b.environment(timezone), Dir: b.folder.Path, User: harness.Nobody(),
		}, b.listens)
	}
	if err != nil {
		return errors.Join(err, b.folder.Remove())
	}
	return nil
}

// arguments returns flags that keep the browser from acting by itself, and from every address but this machine's own.
func (b *Browser) arguments() []string {
	args := []string{
		"--headless", "--remote-debugging-port=0", "--remote-debugging-address=127.0.0.1",
		"--user-data-dir=" + b.folder.Join("profile"),
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--no-proxy-server",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-extensions",
		"--disable-domain-reliability", "--disable-client-side-phishing-detection", "--no-pings", "--no-first-run", "--no-default-browser-check",
		"--disable-breakpad", "--disable-crash-reporter", "--metrics-recording-only", "--password-store=basic", "--use-mock-keychain",
		"--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,AutofillServerCommunication,CertificateTransparencyComponentUpdater",
		// Timers run as in a tab that somebody looks at.
		"--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding",
		"--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--mute-audio", "--force-color-profile=srgb", "--font-render-hinting=none",
	}
	if b.Unguarded != "" {
		args = append(args, "--no-sandbox")
	}
	return append(args, "about:blank")
}

// environment returns an environment with only PATH from this process: no proxy, no session bus, no home.
func (b *Browser) environment(timezone string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + b.folder.Path, "TMPDIR=" + b.folder.Join("tmp"), "TZ=" + timezone, "LANG=C.UTF-8",
		"XDG_CONFIG_HOME=" + b.folder.Path, "XDG_CACHE_HOME=" + b.folder.Path, "XDG_RUNTIME_DIR=" + b.folder.Join("tmp"),
	}
}

// listens reports whether the browser has said where it can be driven.
func (b *Browser) listens(p *harness.Process) bool {
	for _, line := range p.Lines() {
		if url, found := strings.CutPrefix(line, "DevTools listening on "); found {
			b.URL = url
		}
	}
	return b.URL != ""
}

// Stop ends the browser, kills it if it does not end in 5 s or before ctx, and removes its profile. It returns when
// nothing is left.
func (b *Browser) Stop(ctx context.Context) error {
	return errors.Join(b.process.Stop(ctx, stopTime), b.folder.Remove())
}
