package smallfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retry-worker/internal/smallfile"
	"retry-worker/internal/testkit"
)

const most = 100

func TestSecretRefusesWhatOthersReach(t *testing.T) {
	for mode, want := range map[os.FileMode]bool{
		0o600: true, 0o400: true, 0o440: true, 0o640: true, // a Kubernetes Secret is its group's
		0o644: false, 0o604: false, 0o602: false, 0o660: false, 0o620: false, 0o601: false, 0o777: false,
	} {
		path := testkit.File(t, "secret", []byte("x"))
		testkit.Must(t, os.Chmod(path, mode))
		content, err := smallfile.ReadSecret(path, most)
		switch {
		case want && (err != nil || string(content) != "x"):
			t.Errorf("%04o: %v", mode, err)
		case !want && (!errors.Is(err, smallfile.ErrExposed) || content != nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("it has mode %04o, expected 0600; `chmod 600` it", mode))):
			t.Errorf("%04o: got %v", mode, err)
		}
	}
}

// Who may write in its folder could put another file in its place, by a link too.
func TestSecretRefusesAFolderOfEverybody(t *testing.T) {
	own, open := t.TempDir(), filepath.Join(t.TempDir(), "open")
	testkit.Must(t, os.Mkdir(open, 0o700))
	line := []byte("x")
	testkit.Must(t, os.WriteFile(filepath.Join(own, "secret"), line, 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(open, "secret"), line, 0o600))
	testkit.Must(t, os.Symlink(filepath.Join(open, "secret"), filepath.Join(own, "link")))
	for mode, refused := range map[os.FileMode]bool{
		0o755: false, 0o775: false, 0o777 | os.ModeSticky: false, // a Kubernetes Secret's
		0o777: true, 0o757: true, 0o703: true,
	} {
		testkit.Must(t, os.Chmod(open, mode))
		for _, path := range []string{filepath.Join(open, "secret"), filepath.Join(own, "link")} {
			_, err := smallfile.ReadSecret(path, most)
			if refused != (err != nil) || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("stands in the folder %s, which has mode %04o", open, mode)) {
				t.Errorf("%v, %s: got %v, expected that it is refused: %t", mode, filepath.Base(path), err, refused)
			}
		}
		if _, err := smallfile.ReadSecret(filepath.Join(own, "secret"), most); err != nil {
			t.Error(err)
		}
	}
}

// Nor does it help that the folder of everybody stands further up, or on the way of a link, or that its owner is a
// stranger, as is the file's or a link's.
func TestSecretRefusesWhatAStrangerReaches(t *testing.T) {
	const stranger = 4711
	for name, c := range map[string]struct {
		mode  os.FileMode // of the place below
		owner string      // what is the stranger's; empty: nothing
		load  string
		ok    bool
	}{
		"nobody":                          {0o755, "", "a/b/secret", true},
		"further up":                      {0o777, "", "a/b/secret", false},
		"further up, by a link":           {0o777, "", "link", false},
		"further up, by a link's own way": {0o777, "", "other/link", false},
		"by a way back":                   {0o777, "", "other/linked/../secret", false},
		"with the sticky bit":             {0o777 | os.ModeSticky, "", "a/b/secret", true},
		"a stranger's file":               {0o755, "a/b/secret", "a/b/secret", false},
		"a stranger's folder":             {0o755, "a", "a/b/secret", false},
		"a stranger's link":               {0o755, "link", "link", false},
	} {
		t.Run(name, func(t *testing.T) {
			if c.owner != "" && os.Geteuid() != 0 {
				t.Skip("only root gives files away")
			}
			dir := t.TempDir()
			at := func(place string) string { return filepath.Join(dir, place) }
			testkit.Must(t, os.MkdirAll(at("a/b/c"), 0o755))
			testkit.Must(t, os.Mkdir(at("other"), 0o755))
			testkit.Must(t, os.WriteFile(at("a/b/secret"), []byte("x"), 0o600))
			testkit.Must(t, os.Symlink("a/b/secret", at("link")))
			testkit.Must(t, os.Symlink("../a/b/../b/secret", at("other/link")))
			testkit.Must(t, os.Symlink("../a/b/c", at("other/linked")))
			testkit.Must(t, os.Chmod(at("a"), c.mode))
			if c.owner != "" {
				testkit.Must(t, os.Lchown(at(c.owner), stranger, stranger))
			}
			if _, err := smallfile.ReadSecret(dir+"/"+c.load, most); (err == nil) != c.ok {
				t.Errorf("got %v, expected that it is taken: %t", err, c.ok)
			}
		})
	}
}
