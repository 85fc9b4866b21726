// Package release holds what is released against what it promises: every architecture, a bill of materials, licences that
// are allowed. The images are package image's.
package release

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"retry-worker/internal/testkit"
)

const (
	version = "1.2.3-test"
	commit  = "0123456789ab"
	date    = "2026-11-21T12:00:00Z"
)

// release runs scripts/release of the tree at root.
func release(t *testing.T, root, dir, archs string, settings ...string) {
	t.Helper()
	c := exec.Command(filepath.Join(root, "scripts", "release"), dir)
	c.Env = append(append(os.Environ(), "VERSION="+version, "COMMIT="+commit, "DATE="+date, "ARCHS="+archs), settings...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("scripts/release: %v\n%s", err, out)
	}
}

func name(arch string) string { return "retry-worker_" + version + "_linux_" + arch }

func read(t *testing.T, elem ...string) []byte {
	t.Helper()
	return []byte(testkit.Read(t, filepath.Join(elem...)))
}

const root = "../.."

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// TestReleases makes a release of the architectures in ARCHS, which are both in `make release`.
func TestReleases(t *testing.T) {
	dir, archs := t.TempDir(), strings.Fields(cmp.Or(os.Getenv("ARCHS"), "amd64"))
	release(t, root, dir, strings.Join(archs, " "))
	for _, arch := range archs {
		t.Run(arch, func(t *testing.T) {
			binary := filepath.Join(dir, name(arch))
			expectStatic(t, binary, machines[arch])
			parts := expectBill(t, binary)
			expectLicences(t, binary+".licences.txt", append(parts, "retry-worker@"+version))
		})
	}
	t.Run("sums", func(t *testing.T) {
		c := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil || bytes.Count(out, []byte("OK")) != 3*len(archs) {
			t.Errorf("sha256sum --check: %v, expected three files of each that are as summed up:\n%s", err, out)
		}
	})
	expectProgram(t, filepath.Join(dir, name("amd64")))
	if os.Getenv("ARCHS") != "" { // it compiles everything anew
		t.Run("twice", func(t *testing.T) { expectSameElsewhere(t, dir, strings.Join(archs, " ")) })
	}
}

// expectSameElsewhere holds that another copy of the tree, with nothing compiled before, makes the same bytes.
func expectSameElsewhere(t *testing.T, dir, archs string) {
	t.Helper()
	tree, again := t.TempDir(), t.TempDir()
	copied := exec.Command("sh", "-c", `git ls-files -z | tar --create --null --files-from=- | tar --extract --directory="$0"`, tree)
	copied.Dir = root
	if out, err := copied.CombinedOutput(); err != nil {
		t.Fatalf("copy the tree: %v\n%s", err, out)
	}
	release(t, tree, again, archs, "GOCACHE="+t.TempDir())
	if first, second := read(t, dir, "SHA256SUMS"), read(t, again, "SHA256SUMS"); !bytes.Equal(first, second) {
		t.Errorf("a second build made other bytes:\n%s\nexpected\n%s", second, first)
	}
}

// expectStatic holds that the program needs nothing of the system it runs on.
func expectStatic(t *testing.T, binary string, machine elf.Machine) {
	t.Helper()
	f, err := elf.Open(binary)
	testkit.Must(t, err)
	defer f.Close()
	if f.Machine != machine {
		t.Errorf("it is built for %v, expected %v", f.Machine, machine)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("it has a segment %v, expected a static program", p.Type)
		}
	}
}

// component is a part as the bill of materials has it.
type component struct {
	Name, Version, PURL string
	Licenses            []struct {
		License    struct{ ID string }
		Expression string
	}
}

// expectBill holds that the bill of materials names every module in the binary, each with a licence, and returns them.
func expectBill(t *testing.T, binary string) []string {
	t.Helper()
	info, err := buildinfo.ReadFile(binary)
	testkit.Must(t, err)
	var bill struct {
		BOMFormat, SpecVersion string
		Metadata               struct {
			Timestamp string
			Component component
		}
		Components []component
	}
	testkit.Must(t, json.Unmarshal(read(t, binary+".cdx.json"), &bill))
	if m := bill.Metadata; bill.BOMFormat != "CycloneDX" || m.Component.Name != "retry-worker" || m.Component.Version != version || m.Timestamp != date {
		t.Errorf("the bill is %s of %s %s at %s, expected CycloneDX of retry-worker %s at %s",
			bill.BOMFormat, m.Component.Name, m.Component.Version, m.Timestamp, version, date)
	}
	if own := bill.Metadata.Component.Licenses; len(own) != 1 || own[0].License.ID != "Apache-2.0" {
		t.Errorf("the bill says that retry-worker's licence is %v, expected Apache-2.0", own)
	}
	want := []string{"std@" + strings.TrimPrefix(info.GoVersion, "go")}
	for _, m := range info.Deps {
		want = append(want, m.Path+"@"+m.Version)
	}
	var got []string
	for _, c := range bill.Components {
		got = append(got, c.Name+"@"+c.Version)
		if c.PURL != "pkg:golang/"+c.Name+"@"+c.Version || len(c.Licenses) != 1 || c.Licenses[0].License.ID+c.Licenses[0].Expression == "" {
			t.Errorf("%s: the bill says %q and %v, expected its package URL and a licence", c.Name, c.PURL, c.Licenses)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the bill names\n%s\nexpected what is in the binary:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return got
}

// expectLicences holds that each part's licence goes with the binary, in full.
func expectLicences(t *testing.T, file string, parts []string) {
	t.Helper()
	text := string(read(t, file))
	for _, part := range parts {
		module, of, _ := strings.Cut(part, "@")
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(module) + ` +` + regexp.QuoteMeta(of) + ` +[A-Z]`).MatchString(text) {
			t.Errorf("no licence is listed of %s", part)
		}
		if _, full, found := strings.Cut(text, "\n"+module+" "+of+"\n"); !found || !strings.Contains(strings.ToLower(full[:min(len(full), 20_000)]), "copyright") {
			t.Errorf("the licence of %s is not there in full", part)
		}
	}
}

// A licence that nobody has allowed must stop a release.
func TestLicenceNobodyAllowed(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{
		"go.mod":          "module stranger\n\ngo 1.26.0\n\nrequire example.test/copyleft v1.0.0\n\nreplace example.test/copyleft v1.0.0 => ./copyleft\n",
		"main.go":         "package main\n\nimport _ \"example.test/copyleft\"\n\nfunc main() {}\n",
		"copyleft/go.mod": "module example.test/copyleft\n", "copyleft/c.go": "package copyleft\n",
		"copyleft/LICENSE": copyleft(t),
	} {
		testkit.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755))
		testkit.Must(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
	}
	binary := filepath.Join(dir, "stranger")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	describe := exec.Command("go", "run", "-C", filepath.Join(root, "tools"), "./release", "-binary", binary, "-date", date, "-project", dir,
		"-sbom", filepath.Join(dir, "bill"), "-licences", filepath.Join(dir, "licences"))
	out, err := describe.CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("copyleft")) || !bytes.Contains(out, []byte("expected")) {
		t.Errorf("it ended with %v and said %q, expected a refusal that names the module and what is allowed", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "bill")); err == nil {
		t.Error("it wrote a bill of materials all the same")
	}
}

// copyleft is the text of a licence that asks for more than being named, as the tool that tells licences has it.
func copyleft(t *testing.T) string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-C", filepath.Join(root, "tools"), "-m", "-f", "{{.Dir}}", "github.com/google/licenseclassifier/v2").Output()
	testkit.Must(t, err)
	return string(read(t, strings.TrimSpace(string(dir)), "assets", "License", "GPL-3.0", "license.txt"))
}

// expectProgram holds that a program says what it was built from, and has nothing in it that is for development alone.
func expectProgram(t *testing.T, binary string) {
	t.Helper()
	program := read(t, binary)
	for _, part := range []string{"retry-worker/internal/engine", "retry-worker/internal/demo"} {
		if bytes.Contains(program, []byte(part)) {
			t.Errorf("the program has %s in it, which is for development alone", part)
		}
	}
	said, err := exec.Command(binary, "version", "-o", "json").Output()
	var v struct{ Version, Commit, Date string }
	if err != nil || json.Unmarshal(said, &v) != nil || v.Version != version || v.Commit != commit || v.Date != date {
		t.Errorf("version says %s (%v), expected %s, %s, %s", said, err, version, commit, date)
	}
}
