package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/testkit"
)

// TestTokenNew: what is printed is a token, and the line that a tokens file takes for it.
func TestTokenNew(t *testing.T) {
	r := retryWorker("token", "new", "--name", "maria.silva", "--role", "operator", "--expires", "2099-01-31").done(t)
	printed := regexp.MustCompile(`(?s)^name     maria\.silva\nrole     operator\nexpires  2099-01-31\ntoken    (rwt_\w+)\n` +
		`line     maria\.silva operator 2099-01-31 (\w+)\n`).FindStringSubmatch(r.stdout)
	if printed == nil {
		t.Fatalf("it prints %q", r.stdout)
	}
	if sum := sha256.Sum256([]byte(printed[1])); hex.EncodeToString(sum[:]) != printed[2] {
		t.Errorf("the line of\n%s\nis another token's", r.stdout)
	}
	again := retryWorker("token", "new", "--name", "maria.silva", "--role", "operator")
	if strings.Contains(again.stdout, printed[1]) {
		t.Error("the same token twice")
	}
}

func TestTokenNewJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	o := retryWorker("token", "new", "--name", "crm", "--role", "viewer", "--expires", "never", "-o", "json").object(t)
	if line, _ := o["line"].(string); o["name"] != "crm" || o["role"] != "viewer" || o["expires"] != nil || o["file"] != nil || o["teams"] != nil || !strings.HasPrefix(line, "crm viewer - ") || len(o) != 7 {
		t.Errorf("got %v", o)
	}
	o = retryWorker("token", "new", "--name", "ana", "--role", "operator", "--teams", "faturamento,ti", "--expires", "never", "-o", "json").object(t)
	if line, _ := o["line"].(string); o["teams"] != "faturamento,ti" || !strings.HasSuffix(line, " faturamento,ti") {
		t.Errorf("bound to teams: got %v", o)
	}
	before := time.Now().UTC().AddDate(0, 0, 90).Format(time.DateOnly)
	o = retryWorker("token", "new", "--name", "crm", "--role", "viewer", "--file", file, "-o", "json").object(t)
	after := time.Now().UTC().AddDate(0, 0, 90).Format(time.DateOnly)
	if expires, _ := o["expires"].(string); o["file"] != file || expires != before && expires != after {
		t.Errorf("got %v, want it to end in 90 days", o)
	}
	content, err := os.ReadFile(file)
	if line, _ := o["line"].(string); err != nil || !strings.HasSuffix(string(content), "\n"+line+"\n") {
		t.Errorf("the file holds %q, %v", content, err)
	}
}

func TestTokenNewAddsToAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	for _, name := range []string{"maria", "ana"} {
		r := retryWorker("token", "new", "--name", name, "--role", "admin", "--file", file)
		if r.code != exitDone || !strings.HasSuffix(r.stdout, "file     "+file+"\n\nA worker that reads the file takes it up within 10 seconds.\n") {
			t.Fatalf("exit %d, %s%s", r.code, r.stdout, r.stderr)
		}
	}
	tokens, err := access.Load(file)
	if err != nil || tokens.Len() != 2 {
		t.Fatalf("the worker reads %v, %v", tokens, err)
	}
	retryWorker("token", "new", "--name", "ana", "--role", "viewer", "--file", file).fails(t, exitUsage,
		file+`:4: there is a token named "ana", expected another name; to replace that token, take its line out first`)
}

// TestTokenNewOnce: the token goes to a file of its owner's and nowhere else, once however often a container starts, and to
// no file where the tokens file cannot take it.
func TestTokenNewOnce(t *testing.T) {
	dir := t.TempDir()
	tokens, file := filepath.Join(dir, "tokens"), filepath.Join(dir, "token")
	run := func(tokens string) result {
		return retryWorker("token", "new", "--name", "admin", "--role", "admin", "--expires", "never", "--file", tokens, "--token-file", file)
	}
	run(filepath.Join(dir, "no", "tokens")).fails(t, exitFailed, "tokens file "+filepath.Join(dir, "no", "tokens")+
		" cannot be written: no such file or directory; name a file in a directory that is there and that you may write")
	made := run(tokens)
	if made.code != exitDone || strings.Contains(made.stdout, "rwt_") || made.stderr != "" {
		t.Fatalf("exit %d, %q %q", made.code, made.stdout, made.stderr)
	}
	secret, err := readToken(file)
	info, _ := os.Stat(file)
	list, _ := os.ReadFile(tokens)
	sum := sha256.Sum256([]byte(secret))
	if err != nil || info.Mode().Perm() != 0o600 || !strings.Contains(string(list), "\nadmin admin - "+hex.EncodeToString(sum[:])+"\n") {
		t.Errorf("the token's file has mode %v (%v) and the tokens file\n%s", info.Mode(), err, list)
	}
	if again := run(tokens); again.code != exitDone || again.stdout != "" || again.stderr != "retry-worker: "+file+" exists, no token was made\n" {
		t.Errorf("the second time: exit %d, %q %q", again.code, again.stdout, again.stderr)
	}
	if after, err := readToken(file); err != nil || after != secret {
		t.Errorf("the token's file was written anew: %v", err)
	}
}

// TestTokenNewRefuses what testdata/sessions/wrong-token.txt cannot hold: a date of today, and files of the test's own.
func TestTokenNewRefuses(t *testing.T) {
	wrong := testkit.File(t, "tokens", []byte("nonsense\n# fine\nana boss - x\n"))
	shared := testkit.File(t, "shared", nil)
	testkit.Must(t, os.Chmod(shared, 0o644))
	year := time.Now().UTC().AddDate(1, 0, 0).Format(time.DateOnly)
	for _, tt := range []struct {
		args  []string
		code  int
		lines []string
	}{
		{[]string{"--name", "joão", "--role", "boss", "--expires", "1y"}, exitUsage, []string{
			`--name is "joão", expected 1 to 64 letters (without accents), digits and . _ @ -, a letter or digit first`,
			`--role is "boss", expected viewer, operator or admin`,
			`--expires is "1y", expected days such as 90d (up to 3650d), a day to come such as ` + year + `, or never`,
		}},
		{[]string{"--name", "ana", "--role", "viewer", "--file", wrong}, exitUsage, []string{
			wrong + ":1: the number of fields is 1, expected four, name, role, last day (or -) and SHA-256 of the token, and the teams it is bound to if any; `retry-worker token new` prints such a line",
			wrong + `:3: role is "boss", expected viewer, operator or admin`,
			wrong + ":3: hash of length 1, expected the SHA-256 of the token: 64 of 0-9 and a-f; copy the whole line that `retry-worker token new` printed",
			wrong + `:3: there is a token named "ana", expected another name; to replace that token, take its line out first`,
		}},
		{[]string{"--name", "ana", "--role", "viewer", "--file", shared}, exitFailed, []string{
			"tokens file " + shared + " lets in whoever reads it, and others can reach it: it has mode 0644, expected 0600; " +
				"`chmod 600` it (a Kubernetes Secret: defaultMode 0440), and replace what is in it if others may have read it",
		}},
	} {
		retryWorker(append([]string{"token", "new"}, tt.args...)...).fails(t, tt.code, tt.lines...)
	}
}
