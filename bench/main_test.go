package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestSmallest runs all of the benchmark, small: every table is printed, and nothing stays behind.
func TestSmallest(t *testing.T) {
	worker, dir := filepath.Join(t.TempDir(), "retry-worker"), t.TempDir()
	if text, err := exec.Command("go", "build", "-o", worker, "retry-worker/cmd/retry-worker").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	b := bench{jobs: 500, rounds: 1, worker: worker, dir: dir, attempts: 600, held: 50, span: 20 * time.Millisecond}
	var out strings.Builder
	if err := b.run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`\| transient errors only .* µs \|`, `\| realistic mix .* µs \|`, `\| realistic mix over REST .* µs \|`, `\| submission-gate .* µs \|`,
		`\| memory, peak, .* MB \|`, `first answer, at worst \| \d+ ms \|`, `\| 200 \| \d+ \(`, `p99 .*\n.*\n\| SQLite \| \d+ \| [\d.]+ `,
		`\| SQLite \| 600 \| \d+ \| [1-9]\d\d`, `\| CPU, the server's included \| \d+ .* µs`,
		`\| memory above .* MB \|`, `\| released in a minute, .* \| \d+ \|`,
		`\| p99 wait at 200 decisions/s \| [\d.]+ ms \| [\d.]+ ms`, `records a second of its CPU \| \d+ \| \d+`,
		`\| /dead-letters\?sort=amount \| [\d.]+ ms`, `\| /dead-letters/groups \| [\d.]+ ms`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no line is like %s", want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v (%v)", left, err)
	}
	t.Log(&out)
}
