// Package chromium runs a real headless Chromium that cannot leave this machine, for tests of what a browser shows.
package chromium

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/chromedp/chromedp"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
)

// startTime bounds a start, which takes 0.3 s on an idle machine.
const startTime = 60 * time.Second

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

// Start starts a browser in a time zone, an IANA name, and returns chromedp's context of it. If this process is root, the
// browser runs as the user nobody. It reaches only 127.0.0.1. It lacks its sandbox only if the system allows none, as in
// some containers; guarded says whether it has one. No browser outlives this process; stop ends it, and removes its
// profile.
func Start(i fetch.Install, timezone string) (root context.Context, guarded bool, stop func() error, err error) {
	for _, guarded := range []bool{true, false} {
		if root, stop, err = start(i, timezone, guarded); err == nil || !strings.Contains(strings.ToLower(err.Error()), "sandbox") {
			return root, guarded, stop, err
		}
	}
	return nil, false, nil, err
}

func start(i fetch.Install, timezone string, guarded bool) (root context.Context, stop func() error, err error) {
	folder, err := harness.NewFolder("chromium")
	if err != nil {
		return nil, nil, err
	}
	if err = errors.Join(os.Mkdir(folder.Join("tmp"), 0o700), harness.GiveToNobody(folder.Join("tmp")), harness.GiveToNobody(folder.Path)); err != nil {
		return nil, nil, errors.Join(err, folder.Remove())
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(i.Path), chromedp.UserDataDir(folder.Join("profile")), chromedp.DisableGPU, chromedp.Flag("no-sandbox", !guarded),
		chromedp.WSURLReadTimeout(startTime), chromedp.NoInheritEnv, chromedp.Env( // no proxy, no session bus, no home
			"PATH="+os.Getenv("PATH"), "HOME="+folder.Path, "TMPDIR="+folder.Join("tmp"), "TZ="+timezone, "LANG=C.UTF-8",
			"XDG_CONFIG_HOME="+folder.Path, "XDG_CACHE_HOME="+folder.Path, "XDG_RUNTIME_DIR="+folder.Join("tmp")),
		chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) {
			cmd.Dir = folder.Path
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: harness.Nobody()}
		}))
	for name, value := range map[string]any{
		"host-resolver-rules": "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "no-proxy-server": true,
		"disable-component-update": true, "disable-domain-reliability": true, "no-pings": true, "disable-crash-reporter": true,
		"disable-features":    "Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,AutofillServerCommunication,CertificateTransparencyComponentUpdater",
		"font-render-hinting": "none",
	} {
		options = append(options, chromedp.Flag(name, value))
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	root, cancel := chromedp.NewContext(allocator)
	stop = func() error { cancel(); end(); return folder.Remove() }
	if err := chromedp.Do(root); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start Chromium %s: %w", i.Version, err), stop())
	}
	return root, stop, nil
}
