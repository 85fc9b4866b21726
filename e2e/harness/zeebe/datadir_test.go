package zeebe

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDataOfDeadOwnersAreSwept(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	folder := func(age time.Duration) *dataDir {
		d, err := openDataDir("")
		if err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-age)
		if err := os.Chtimes(filepath.Join(d.path, ownerLock), then, then); err != nil {
			t.Fatal(err)
		}
		return d
	}
	living, dead, young := folder(time.Hour), folder(time.Hour), folder(0)
	for _, d := range []*dataDir{dead, young} { // as the system does when a process ends
		if err := d.lock.Close(); err != nil {
			t.Fatal(err)
		}
	}
	sweep(os.TempDir())
	for what, c := range map[string]struct {
		d    *dataDir
		kept bool
	}{"of a living owner": {living, true}, "of a dead one": {dead, false}, "made just now": {young, true}} {
		if _, err := os.Stat(c.d.path); (err == nil) != c.kept {
			t.Errorf("the folder %s: %v, expected kept: %v", what, err, c.kept)
		}
	}
}

func TestTwoBrokersDoNotShareAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first, err := openDataDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openDataDir(dir); err == nil || !strings.Contains(err.Error(), "another broker uses it") {
		t.Errorf("got %v, expected that another uses it", err)
	}
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("a folder of the caller's was removed: %v", err)
	}
}

func TestBrokerInheritsNoForeignSettings(t *testing.T) {
	b := &Broker{dir: &dataDir{path: "/data"}, options: Options{Env: []string{"ZEEBE_LOG_LEVEL=debug"}}}
	env := b.environment([]string{"HOME=/home/a", "ZEEBE_ADDRESS=elsewhere", "SERVER_PORT=80", "JAVA_OPTS=-Xmx9g", "JAVA_TOOL_OPTIONS=-Da=b"})
	for _, pair := range []string{"HOME=/home/a", "JAVA_TOOL_OPTIONS=-Da=b", "ZEEBE_CLOCK_CONTROLLED=true", "ZEEBE_LOG_LEVEL=debug"} {
		if !slices.Contains(env, pair) {
			t.Errorf("%s is missing", pair)
		}
	}
	for _, pair := range []string{"ZEEBE_ADDRESS=elsewhere", "SERVER_PORT=80", "JAVA_OPTS=-Xmx9g"} {
		if slices.Contains(env, pair) {
			t.Errorf("%s was passed on", pair)
		}
	}
}
