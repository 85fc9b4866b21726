package access_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"retry-worker/internal/access"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

var hashes = [...]string{strings.Repeat("0a", 32), strings.Repeat("1b", 32), strings.Repeat("2c", 32), strings.Repeat("3d", 32)}

// TestTokensFiles plays testdata/tokens.txt: what stands in a file, behind =, and the tokens that it has, or what is wrong.
func TestTokensFiles(t *testing.T) {
	secret, _ := token(t, "x", access.Viewer)
	names := []string{"HASH1", hashes[0], "HASH2", hashes[1], "HASH3", hashes[2], "SECRET", secret, `\n`, "\n", `\r`, "\r", `\t`, "\t", "SIXTY", strings.Repeat("x", 60)}
	golden.Story(t, "testdata/tokens.txt", func(command string) string {
		content := strings.NewReplacer(names...).Replace(strings.TrimPrefix(command, "= "))
		tokens, err := access.Parse("tokens", []byte(strings.Replace(content, "UPPER ", strings.ToUpper(secret)+" ", 1)))
		if err != nil {
			return strings.ReplaceAll(err.Error(), strings.Repeat("x", 60), "SIXTY") + "\n"
		}
		said := fmt.Sprintf("%d, of which %d expired\n", tokens.Len(), tokens.Expired(start))
		for _, holder := range tokens.Holders() {
			said += holder.Line() + "\n"
		}
		return strings.NewReplacer(hashes[0], "HASH1", hashes[1], "HASH2", hashes[2], "HASH3").Replace(said)
	})
}

// FuzzParse: whatever the file holds, it is read or refused; what is read is read again from its lines, and no problem
// repeats a token.
func FuzzParse(f *testing.F) {
	secret := "rwt_" + strings.Repeat("a", 52)
	for _, seed := range []string{
		"", "# x\n", "maria operator 2027-01-31 " + hashes[0] + "\n", "a viewer - " + hashes[0] + "\nb admin - " + hashes[0],
		"a viewer - " + secret, secret + " a b c", "a\x00b viewer - \xff", strings.Repeat("x\n", 40), "a viewer 9999-12-31 " + hashes[1],
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		tokens, err := access.Parse("tokens", content)
		if err != nil {
			if wrong, is := errors.AsType[access.FileError](err); !is || wrong.Error() == "" || tokens != nil {
				t.Fatalf("refused by %v", err)
			}
			if strings.Contains(err.Error(), secret) {
				t.Fatalf("a secret is shown: %v", err)
			}
			return
		}
		lines := ""
		for _, holder := range tokens.Holders() {
			if access.CheckName(holder.Name) != nil || !holder.Role.May(access.Read) {
				t.Fatalf("taken: %+v", holder)
			}
			lines += holder.Line() + "\n"
		}
		again, err := access.Parse("tokens", []byte(lines))
		if err != nil || !slices.Equal(again.Holders(), tokens.Holders()) {
			t.Fatalf("%q is read otherwise: %v", lines, err)
		}
	})
}

func TestLoadSaysWhyItCannotRead(t *testing.T) {
	dir := t.TempDir()
	large := testkit.File(t, "tokens", []byte(strings.Repeat("#", 256<<10)+"\n"))
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "tokens file " + dir + "/none cannot be read: no such file or directory; name a readable file, `retry-worker token new --file` makes one",
		dir:                        "tokens file " + dir + " cannot be read: it is no regular file; name a readable file, `retry-worker token new --file` makes one",
		large:                      "tokens file " + large + " has more than 256 KiB; take out the tokens that have expired",
	} {
		if _, err := access.Load(path); err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// TestAppend: what a file holds stays, a line is whole even behind an editor's last one, and what is refused changes nothing.
func TestAppend(t *testing.T) {
	_, maria := token(t, "maria", access.Operator)
	known := "ana viewer - " + hashes[0]
	for content, tt := range map[string]struct {
		mode os.FileMode
		want string // that the file holds then; empty: it is refused
	}{
		"":                   {0o600, maria.Line()},
		"# nobody yet":       {0o600, "# nobody yet\n" + maria.Line()},
		known:                {0o600, known + "\n" + maria.Line()},
		known + "\n":         {0o600, known + "\n" + maria.Line()},
		known + " ti\n":      {0o644, ""},
		"MARIA" + known[3:]:  {0o600, ""},
		"nonsense\n" + known: {0o600, ""},
	} {
		path := testkit.File(t, "tokens", []byte(content))
		testkit.Must(t, os.Chmod(path, tt.mode))
		err := access.Append(path, &maria)
		want := content
		if tt.want != "" {
			want = tt.want + "\n"
		}
		if got := testkit.Read(t, path); (err != nil) != (tt.want == "") || got != want {
			t.Errorf("%q with mode %o: %v, and it holds %q", content, tt.mode, err, got)
		}
	}
	made := filepath.Join(t.TempDir(), "tokens")
	testkit.Must(t, access.Append(made, &maria))
	if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o600 || !strings.HasPrefix(testkit.Read(t, made), "# ") {
		t.Errorf("a new file has mode %v (%v), or does not say what it is", info.Mode(), err)
	}
	missing := filepath.Join(t.TempDir(), "no", "tokens")
	want := "tokens file " + missing + " cannot be written: no such file or directory; name a file in a directory that is there and that you may write"
	if err := access.Append(missing, &maria); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
