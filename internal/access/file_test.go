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
			if wrong, is := errors.AsType[*access.FileError](err); !is || wrong.Error() == "" || tokens != nil {
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

// tokensFile is a file with those lines, as a person's umask leaves it but for mode.
func tokensFile(t *testing.T, mode os.FileMode, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	rewrite(t, path, lines...)
	testkit.Must(t, os.Chmod(path, mode))
	return path
}

func rewrite(t *testing.T, path string, lines ...string) {
	t.Helper()
	testkit.Must(t, os.WriteFile(path, []byte(strings.Join(slices.Concat(lines, []string{""}), "\n")), 0o600))
}

func TestLoadSaysWhyItCannotRead(t *testing.T) {
	dir := t.TempDir()
	large := tokensFile(t, 0o600, strings.Repeat("#", 256<<10))
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

func TestAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	_, maria := token(t, "maria", access.Operator)
	_, ana := tokenUntil(t, "ana", access.Admin, "90d")
	testkit.Must(t, access.Append(path, &maria))
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v, want 0600", info.Mode(), err)
	}
	content := testkit.Read(t, path)
	testkit.Must(t, os.WriteFile(path, []byte(content[:len(content)-1]), 0o600)) // as an editor may leave it
	testkit.Must(t, access.Append(path, &ana))
	tokens, err := access.Load(path)
	if err != nil || !slices.Equal(tokens.Holders(), []access.Token{maria, ana}) {
		t.Fatalf("got %v, %v", tokens, err)
	}
	before := testkit.Read(t, path)
	if !strings.HasPrefix(before, "# ") {
		t.Error("a new file does not say what it is")
	}

	_, other := token(t, "MARIA", access.Viewer)
	_, is := errors.AsType[*access.FileError](access.Append(path, &other))
	if after, err := os.ReadFile(path); err != nil || !is || string(after) != before {
		t.Errorf("a name that is taken: refused %v, file changed %v", is, string(after) != before)
	}
}

func TestAppendRefusesAWrongFile(t *testing.T) {
	_, maria := token(t, "maria", access.Operator)
	for content, mode := range map[string]os.FileMode{"nonsense": 0o600, "ana viewer - " + hashes[0]: 0o644} {
		path := tokensFile(t, mode, content)
		if err := access.Append(path, &maria); err == nil {
			t.Errorf("%q with mode %o: added to", content, mode)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != content+"\n" {
			t.Errorf("%q: changed to %q", content, after)
		}
	}
	for _, content := range []string{"", "# nobody yet\n"} {
		path := tokensFile(t, 0o600, content)
		if err := access.Append(path, &maria); err != nil {
			t.Errorf("%q: %v", content, err)
		}
	}
	missing := filepath.Join(t.TempDir(), "no", "tokens")
	want := "tokens file " + missing + " cannot be written: no such file or directory; name a file in a directory that is there and that you may write"
	if err := access.Append(missing, &maria); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
