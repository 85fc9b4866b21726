package upgrade

import (
	"archive/tar"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/testkit"
)

//go:embed previous
var previousFile string

// previous version: its commit, and the schema that it knows.
type version struct {
	commit string
	schema int64
}

// readPrevious reads the file that names the version before.
func readPrevious() (v version, err error) {
	for line := range strings.Lines(previousFile) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "commit":
			v.commit = value
		case "schema":
			v.schema, err = strconv.ParseInt(value, 10, 64)
		}
	}
	if err != nil || len(v.commit) != 40 || v.schema < 1 {
		return version{}, fmt.Errorf("e2e/upgrade/previous: found the commit %q and the schema %d, expected 40 digits and a number", v.commit, v.schema)
	}
	return v, nil
}

// schemaBefore is the schema's version that the version before knows.
func schemaBefore(t *testing.T) string {
	t.Helper()
	v, err := readPrevious()
	testkit.Must(t, err)
	return strconv.FormatInt(v.schema, 10)
}

// binaryBefore returns the path of the program of the version before. The test is left out, and a line says so, where its source
// cannot be had.
func binaryBefore(t *testing.T) string {
	t.Helper()
	harness.SkipIfShort(t)
	previous.once.Do(func() { previous.path, previous.absent, previous.err = buildPrevious() })
	testkit.Must(t, previous.err)
	if previous.absent != nil {
		t.Skip(previous.absent)
	}
	return previous.path
}

var previous struct {
	once        sync.Once
	path        string
	absent, err error
}

// buildPrevious builds the version before as `make build` does, so that their caches are one. absent says why its source cannot
// be had, which is no error.
func buildPrevious() (program string, absent, err error) {
	v, err := readPrevious()
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "upgrade-")
	if err != nil {
		return "", nil, fmt.Errorf("make a folder for the version before: %w", err)
	}
	harness.AtEnd(func() error { return os.RemoveAll(dir) })
	source := filepath.Join(dir, "source")
	absent, err = extract(v.commit, source)
	if absent != nil {
		fmt.Printf("PRINT upgrade  LEFT OUT: both programs on one journal, because %v. Held all the same: its recorded schema and rows. "+
			"In a whole clone (git fetch --unshallow) all of it runs.\n", absent)
	}
	if absent != nil || err != nil {
		return "", absent, err
	}
	program = filepath.Join(dir, "before")
	command := exec.Command("go", "build", "-trimpath", "-o", program, "./cmd/retry-worker")
	command.Dir = source
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := command.CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("build the version before: %w\n%s", err, out)
	}
	return program, nil, nil
}

// extract the source of a commit into a folder.
func extract(commit, folder string) (absent, err error) {
	if said, err := exec.Command("git", "rev-parse", "--git-dir").CombinedOutput(); err != nil {
		return fmt.Errorf("git finds no repository here (%w: %s)", err, firstLine(string(said))), nil
	}
	if err := exec.Command("git", "cat-file", "-e", commit+"^{commit}").Run(); err != nil {
		return fmt.Errorf("this clone does not have the commit %.7s", commit), nil
	}
	root, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return nil, fmt.Errorf("find the root of the repository: %w", err)
	}
	command := exec.Command("git", "archive", "--format=tar", commit)
	command.Dir = strings.TrimSpace(string(root))
	files, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("read the source of the version before: %w", err)
	}
	return nil, unpack(files, folder)
}

// unpack an archive of plain files.
func unpack(archive []byte, folder string) error {
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the source of the version before: %w", err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if !filepath.IsLocal(h.Name) {
			return fmt.Errorf("the source of the version before has the file %q", h.Name)
		}
		path := filepath.Join(folder, h.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		content, err := io.ReadAll(r)
		if err == nil {
			err = os.WriteFile(path, content, 0o600)
		}
		if err != nil {
			return fmt.Errorf("write the source of the version before: %w", err)
		}
	}
}

// TestASourceThatIsAbsent: a clone without the commit says so, and is no failure; a commit that is there is unpacked whole.
func TestASourceThatIsAbsent(t *testing.T) {
	why, err := extract(strings.Repeat("0", 40), t.TempDir())
	if err != nil || why == nil || strings.Contains(why.Error(), "\n") {
		t.Errorf("of a commit that is not there, it says %v (%v), want one line and no error", why, err)
	}
}

// TestWhatTheVersionBeforeDoesNotKnow: a setting, and a key in the policies file, that came with this version are refused by the
// one before, in lines that name them. So they go back with the program (docs/operations.md, "Upgrade").
func TestWhatTheVersionBeforeDoesNotKnow(t *testing.T) {
	binaryBefore(t)
	file := filepath.Join(t.TempDir(), "policies.yaml")
	testkit.Must(t, os.WriteFile(file, []byte(harness.Teams(t, string(catalogue.Default().YAML()), map[string][]string{"ti": {"email: [ti@hospital.example]"}})), 0o600))
	for name, c := range map[string]struct{ setting, says string }{
		"setting":       {"RETRY_WORKER_NOTIFY_INTERVAL=15m", "RETRY_WORKER_NOTIFY_INTERVAL"},
		"policies file": {"RETRY_WORKER_POLICIES_FILE=" + file, "teams.ti.email: found the unknown key"},
	} {
		command := exec.Command(binaryBefore(t), "serve")
		command.Env = harness.Settings("127.0.0.1:1", t.TempDir(), c.setting)
		out, err := command.CombinedOutput()
		if err == nil || command.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), c.says) {
			t.Errorf("of a %s of this version, the one before says (%v): %s", name, err, out)
		}
	}
}
