package zeebe

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

type entry struct {
	name, content string
	mode          int64
	kind          byte
}

// archive is a .tar.gz.
func archive(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for _, e := range entries {
		if err := w.WriteHeader(&tar.Header{Name: e.name, Mode: e.mode, Typeflag: e.kind, Size: int64(len(e.content)), Linkname: "/etc/passwd"}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// maven is a mvn that tells how far it is and copies a distribution, when there is a file go; it counts its
// runs in a file.
func (m machine) maven(distribution []byte) (runs string) {
	m.t.Helper()
	file, runs := filepath.Join(m.home, "dist.tar.gz"), filepath.Join(m.home, "runs")
	m.command(m.goFile(), "")
	m.java("17", m.path, "java") // enough for Maven
	m.command(filepath.Join(m.path, "mvn"), `
echo run >> `+runs+`
for a; do case $a in -DoutputDirectory=*) dir=${a#*=};; -Dartifact=*:camunda-zeebe:8.5.8:tar.gz) ok=yes;; esac; done
[ $ok = yes ] || exit 9
printf 'Downloading from x: y/camunda-zeebe-8.5.8.tar.gz\nProgress (1): 4.2/212 MB\r'
while [ ! -e `+m.goFile()+` ]; do /bin/sleep 0.01; done
/bin/cp `+file+` "$dir/camunda-zeebe-8.5.8.tar.gz"`)
	if err := os.MkdirAll(m.home, 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(file, distribution, 0o644); err != nil {
		m.t.Fatal(err)
	}
	return runs
}

// goFile is what the fake Maven waits for.
func (m machine) goFile() string { return filepath.Join(m.home, "go") }

func TestFetchDownloadsOnceForManyAtATime(t *testing.T) {
	m := newMachine(t)
	runs := m.maven(archive(t,
		entry{"camunda-zeebe-8.5.8/", "", 0o755, tar.TypeDir},
		entry{"camunda-zeebe-8.5.8/bin/broker", "#!", 0o755, tar.TypeReg},
		entry{"camunda-zeebe-8.5.8/lib/a.jar", "jar", 0o644, tar.TypeReg}))
	if err := os.Remove(m.goFile()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	var mu sync.Mutex
	most := map[Step]int64{} // bytes
	for range 4 {
		all.Go(func() {
			home, err := Fetch(ctx, "8.5.8", func(p Progress) {
				mu.Lock()
				defer mu.Unlock()
				most[p.Step] = max(most[p.Step], p.Bytes)
				if _, waited := most[Waiting]; waited && most[Downloading] == 4_200_000 {
					m.command(m.goFile(), "") // both were seen
				}
			})
			if err != nil {
				t.Error(err)
				return
			}
			if info, err := os.Stat(filepath.Join(home, "bin", "broker")); err != nil || info.Mode()&0o100 == 0 {
				t.Errorf("the launcher: %v, expected one to be run", err)
			}
		})
	}
	all.Wait()
	if n, err := os.ReadFile(runs); err != nil || strings.Count(string(n), "run") != 1 {
		t.Errorf("Maven ran %d times (%v), expected once", strings.Count(string(n), "run"), err)
	}
	if left, _ := filepath.Glob(filepath.Join(m.cache, "retry-worker", "*.partial")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestFetchThatFailsSaysWhyAndLeavesNothing(t *testing.T) {
	dist := func(e ...entry) func(m machine) {
		return func(m machine) { m.maven(archive(m.t, e...)) }
	}
	for name, c := range map[string]struct {
		there func(m machine)
		want  string
	}{
		"no Maven": {func(machine) {}, "mvn is not on the PATH; install Maven"},
		"no Java for Maven": {func(m machine) { m.command(filepath.Join(m.path, "mvn"), "") },
			"no Java 21 or newer (found: none); install"},
		"no network": {func(m machine) {
			m.java("17", m.path, "java")
			m.command(filepath.Join(m.path, "mvn"), "echo '[INFO] x'\necho '[ERROR] Failed to execute goal a:b:copy (default-cli) on project standalone-pom: no route -> [Help 1]'\necho '[ERROR] '\nexit 1")
		}, "maven says: no route; check the network"},
		"outside":    {dist(entry{"z/../../evil", "x", 0o644, tar.TypeReg}), "unpack"},
		"absolute":   {dist(entry{"/a/../../b", "x", 0o644, tar.TypeReg}, entry{"z/../../../../b", "x", 0o644, tar.TypeReg}), "unpack"},
		"a link":     {dist(entry{"z/bin/broker", "", 0o755, tar.TypeSymlink}), "neither a file nor a folder"},
		"no broker":  {dist(entry{"z/bin/other", "x", 0o755, tar.TypeReg}), "no bin/broker in it"},
		"no archive": {func(m machine) { m.maven([]byte("<html>")) }, "unpack"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			c.there(m)
			_, err := Fetch(t.Context(), "8.5.8", nil)
			if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, expected one line with %q", err, c.want)
			}
			left, _ := filepath.Glob(filepath.Join(m.cache, "retry-worker", "*"))
			if len(left) != 1 || !strings.HasSuffix(left[0], ".lock") {
				t.Errorf("left in the cache: %v, expected the lock only", left)
			}
		})
	}
}

func TestFetchEndsMavenWhenItsContextEnds(t *testing.T) {
	m := newMachine(t)
	m.java("17", m.path, "java")
	m.command(filepath.Join(m.path, "mvn"), "echo '[INFO] x'; exec /bin/sleep 600")
	ctx, cancel := context.WithCancel(t.Context())
	begun := time.Now()
	_, err := Fetch(ctx, "8.5.8", func(p Progress) {
		if p.Step == Downloading {
			cancel()
		}
	})
	if err == nil || !strings.Contains(err.Error(), "context canceled") || time.Since(begun) > 30*time.Second {
		t.Errorf("got %v after %v, expected that it was cancelled at once", err, time.Since(begun))
	}
	if left, _ := filepath.Glob(filepath.Join(m.cache, "retry-worker", "zeebe-8.5.8*")); len(left) != 1 {
		t.Errorf("left in the cache: %v, expected the lock only", left)
	}
}

func TestFetchWithoutAHome(t *testing.T) {
	m := newMachine(t)
	m.maven(archive(t, entry{"z/bin/broker", "#!", 0o755, tar.TypeReg}))
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	home, err := Fetch(t.Context(), "8.5.8", nil)
	if err != nil || !strings.HasPrefix(home, temporary) {
		t.Errorf("got %q (%v), expected a folder in %s", home, err, temporary)
	}
}
