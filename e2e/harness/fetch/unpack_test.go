package fetch

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestUntarMakesLinksThatStayInside(t *testing.T) {
	for name, c := range map[string]struct {
		link, target string
		layout       Layout
		want         string // empty: an error
	}{
		"beside it":        {"lib/libpq.so", "libpq.so.5", Layout{Links: true}, "lib/libpq.so"},
		"up and down":      {"bin/x", "../lib/libpq.so.5", Layout{Links: true}, "bin/x"},
		"stripped":         {"pg/bin/x", "../libpq.so.5", Layout{Links: true, Strip: true}, "bin/x"},
		"no links wanted":  {"lib/libpq.so", "libpq.so.5", Layout{}, ""},
		"outside":          {"lib/x", "../../x", Layout{Links: true}, ""},
		"outside stripped": {"pg/x", "../libpq.so.5", Layout{Links: true, Strip: true}, ""},
		"absolute":         {"x", "/etc/passwd", Layout{Links: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			for _, h := range []*tar.Header{
				{Name: "lib/", Mode: 0o755, Typeflag: tar.TypeDir},
				{Name: "lib/libpq.so.5", Mode: 0o644, Size: 3, Typeflag: tar.TypeReg},
				{Name: c.link, Linkname: c.target, Typeflag: tar.TypeSymlink},
			} {
				if err := w.WriteHeader(h); err != nil {
					t.Fatal(err)
				}
				if h.Size > 0 {
					if _, err := w.Write([]byte("abc")); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			err := Untar(&b, dir, c.layout)
			if (err == nil) != (c.want != "") {
				t.Fatalf("got %v, expected a link: %v", err, c.want != "")
			}
			if c.want == "" {
				return
			}
			if content, err := os.ReadFile(filepath.Join(dir, c.want)); err != nil || string(content) != "abc" {
				t.Errorf("through the link: %q (%v), expected abc", content, err)
			}
		})
	}
}

func TestUntarRefusesAFileThroughALink(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	outside := t.TempDir()
	for _, h := range []*tar.Header{
		{Name: "a", Linkname: ".", Typeflag: tar.TypeSymlink},
		{Name: "a/../../" + filepath.Base(outside) + "/x", Mode: 0o644, Typeflag: tar.TypeReg},
	} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Untar(&b, t.TempDir(), Layout{Links: true}); err == nil {
		t.Error("a file was written outside")
	}
	if _, err := os.Stat(filepath.Join(outside, "x")); err == nil {
		t.Error("the file is there")
	}
}
