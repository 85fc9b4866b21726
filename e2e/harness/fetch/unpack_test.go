package fetch

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestUntarStaysInItsFolder(t *testing.T) {
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: "./zeebe/"},
		{Typeflag: tar.TypeReg, Name: "./zeebe/bin/broker", Mode: 0o755},
		{Typeflag: tar.TypeSymlink, Name: "./zeebe/out", Linkname: "/"},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	whole := bytes.Clone(packed.Bytes())
	dir := t.TempDir()
	if err := Untar(bytes.NewReader(whole), dir, true); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "bin/broker")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the program: %v, %v", info, err)
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "./zeebe/out/retry-worker-test", Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	if err := Untar(&packed, t.TempDir(), true); err == nil {
		t.Error("a file was written through a link that leads outside")
	}
}
