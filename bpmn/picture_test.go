package bpmn_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"retry-worker/bpmn"
)

func needNode(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("node"); err == nil {
		return
	}
	const missing = "NOT RUN: check that the models' pictures are up to date — install with: apt-get install -y nodejs npm"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
}

func TestPicturesAreMadeFromTheModelsAsTheyAre(t *testing.T) {
	needNode(t)
	if a := runNode(toolTime, "render.mjs", "--check"); a.code != 0 {
		t.Error(a.text)
	}
}

func TestTheCheckNoticesAStalePicture(t *testing.T) {
	needNode(t)
	for _, m := range bpmn.Models() {
		t.Run(m.ProcessID, func(t *testing.T) { noticesStale(t, "bpmn/"+m.Name, "docs/pictures/"+m.ProcessID) })
	}
}

// noticesStale spoils a model or its pictures in a copy of both folders.
func noticesStale(t *testing.T, model, picture string) {
	for name, c := range map[string]struct {
		spoil func(root *os.Root) error
		says  string
	}{
		"the model changed":   {func(r *os.Root) error { return extend(r, model) }, "not those made from the model"},
		"the picture changed": {func(r *os.Root) error { return extend(r, picture+".png") }, "not those made from the model"},
		"the picture is gone": {func(r *os.Root) error { return r.Remove(picture + ".svg") }, picture + ".svg"},
		"never drawn":         {func(r *os.Root) error { return r.Remove(picture + ".sha256") }, picture + ".sha256"},
		"the model is gone":   {func(r *os.Root) error { return r.Remove(model) }, picture + ".sha256 belongs to no model"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, folder := range []string{"bpmn", "docs/pictures"} {
				if err := os.CopyFS(filepath.Join(dir, folder), os.DirFS(filepath.Join("..", folder))); err != nil {
					t.Fatal(err)
				}
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			if a := runNode(toolTime, "render.mjs", "--check", "--root", dir); a.code != 0 {
				t.Fatalf("an untouched copy is refused: %s", a.text)
			}
			if err := c.spoil(root); err != nil {
				t.Fatal(err)
			}
			if a := runNode(toolTime, "render.mjs", "--check", "--root", dir); a.code != 1 || !strings.Contains(a.text, c.says) {
				t.Errorf("the check ended with %d and said %q, expected 1 and %q", a.code, a.text, c.says)
			}
		})
	}
}

// extend adds a line end to a file.
func extend(root *os.Root, name string) error {
	f, err := root.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteString("\n"); err != nil {
		return err
	}
	return f.Close()
}
