package chromium

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"retry-worker/e2e/harness"
)

const (
	// startTime bounds a start, which takes 0.3 s on an idle machine; pollEvery is how often it is looked at.
	startTime = 60 * time.Second
	pollEvery = 10 * time.Millisecond
	// stopTime is what a stop may take before the browser is killed.
	stopTime = 5 * time.Second
)

// Options of a browser. The zero value is a good one.
type Options struct {
	// Timezone by its IANA name; empty: UTC, whatever the machine's is.
	Timezone string
	// Output takes what the browser prints; nil drops it.
	Output io.Writer
}

// Browser is a running Chromium without a window, with a profile of its own that goes with it. It reaches
// 127.0.0.1 only. Its methods may be called by several goroutines.
type Browser struct {
	process *harness.Process
	profile *profile
	url     string
	open    string // why there is no sandbox
}

// Start runs a browser and returns when it can be driven. Where this process is root it runs as the user
// nobody. Its sandbox is left out only where the system does not let it have one, as some containers do not;
// Unguarded says so. No browser outlives this process on Linux. ctx bounds the start only. The error is one
// line that ends with what the browser said last; nothing is left then.
func Start(ctx context.Context, i Install, o Options) (*Browser, error) {
	b := &Browser{}
	err := b.run(ctx, i, o)
	if err != nil && b.process != nil && needsNoSandbox(b.process.Lines()) {
		b.open = "this system lets Chromium have no sandbox (no user namespaces, no SUID helper)"
		err = b.run(ctx, i, o)
	}
	if err != nil {
		return nil, fmt.Errorf("start Chromium %s: %w", i.Version, err)
	}
	return b, nil
}

// needsNoSandbox tells whether a browser ended for want of a sandbox.
func needsNoSandbox(lines []string) bool {
	for _, line := range lines {
		for _, said := range []string{"No usable sandbox", "without --no-sandbox", "Failed to move to new namespace", "sandbox_host_linux", "credentials.cc"} {
			if strings.Contains(line, said) {
				return true
			}
		}
	}
	return false
}

// run leaves nothing when it fails, but the process's last words.
func (b *Browser) run(ctx context.Context, i Install, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	var err error
	if b.profile, err = newProfile(); err != nil {
		return err
	}
	b.process, err = harness.Start(harness.Command{
		Path: i.Path, Args: b.arguments(), Env: b.environment(o), Dir: b.profile.path, User: harness.Nobody(), Output: o.Output,
	})
	if err == nil {
		if b.url, err = b.address(ctx); err == nil {
			return nil
		}
		b.process.Kill()
	}
	return errors.Join(err, b.profile.remove())
}

// arguments keep it from all that a browser does by itself, and from every address but this machine's own.
func (b *Browser) arguments() []string {
	args := []string{
		"--headless=new", "--remote-debugging-port=0", "--remote-debugging-address=127.0.0.1",
		"--user-data-dir=" + filepath.Join(b.profile.path, "profile"),
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--no-proxy-server",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-extensions",
		"--disable-domain-reliability", "--disable-client-side-phishing-detection", "--no-pings", "--no-first-run", "--no-default-browser-check",
		"--disable-breakpad", "--disable-crash-reporter", "--metrics-recording-only", "--password-store=basic", "--use-mock-keychain",
		"--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,AutofillServerCommunication,CertificateTransparencyComponentUpdater",
		// Timers run as they do in the tab that somebody looks at.
		"--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding",
		"--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--mute-audio", "--force-color-profile=srgb", "--font-render-hinting=none",
	}
	if b.open != "" {
		args = append(args, "--no-sandbox")
	}
	return append(args, "about:blank")
}

// environment has nothing of this process's but where programs are: no proxy, no session bus, no home.
func (b *Browser) environment(o Options) []string {
	zone := o.Timezone
	if zone == "" {
		zone = "UTC"
	}
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + b.profile.path, "TMPDIR=" + b.profile.temporary(), "TZ=" + zone, "LANG=C.UTF-8",
		"XDG_CONFIG_HOME=" + b.profile.path, "XDG_CACHE_HOME=" + b.profile.path, "XDG_RUNTIME_DIR=" + b.profile.temporary(),
	}
}

// address waits until the browser says where it is driven from.
func (b *Browser) address(ctx context.Context) (string, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		for _, line := range b.process.Lines() {
			if url, found := strings.CutPrefix(line, "DevTools listening on "); found {
				return url, nil
			}
		}
		select {
		case <-tick.C:
		case <-b.process.Done():
			return "", errors.New("it ended at once; it said last: " + b.process.LastLine())
		case <-ctx.Done():
			return "", fmt.Errorf("it cannot be driven: %w; it said last: %s", ctx.Err(), b.process.LastLine())
		}
	}
}

// URL is where the browser is driven from by the DevTools protocol: "ws://127.0.0.1:…". Everybody on this
// machine who knows it can.
func (b *Browser) URL() string { return b.url }

// Unguarded is why the browser runs without its sandbox; empty where it has one.
func (b *Browser) Unguarded() string { return b.open }

// PID is the browser's process id, and its group's.
func (b *Browser) PID() int { return b.process.PID() }

// Stop ends the browser, kills it where it does not end in 5 s or ctx ends, and removes its profile. It
// returns when nothing is left.
func (b *Browser) Stop(ctx context.Context) error {
	return errors.Join(b.process.Stop(ctx, stopTime), b.profile.remove())
}
