package access_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"retry-worker/internal/access"
	"retry-worker/internal/testkit"
)

var hashes = [...]string{strings.Repeat("0a", 32), strings.Repeat("1b", 32), strings.Repeat("2c", 32), strings.Repeat("3d", 32)}

func TestParse(t *testing.T) {
	tokens, err := access.Parse("tokens", []byte("# people\n\nmaria operator 2027-01-31 "+hashes[0]+"\r\n\tana   admin - "+hashes[1]+" # night shift\n"+
		"#old viewer - "+hashes[1]+"\ncrm viewer 2000-01-01 "+hashes[2]))
	testkit.Must(t, err)
	var got []string
	for _, holder := range tokens.Holders() {
		got = append(got, holder.Line())
	}
	want := []string{"maria operator 2027-01-31 " + hashes[0], "ana admin - " + hashes[1], "crm viewer 2000-01-01 " + hashes[2]}
	if !slices.Equal(got, want) || tokens.Len() != 3 || tokens.Expired(start) != 1 {
		t.Errorf("got %q, %d expired", got, tokens.Expired(start))
	}
}

func TestParseSaysAllThatIsWrong(t *testing.T) {
	const (
		name = "expected 1 to 64 letters (without accents), digits and . _ @ -, a letter or digit first"
		last = "expected a day such as 2027-01-31, or - for never"
		hash = "expected the SHA-256 of the token: 64 of 0-9 and a-f; copy the whole line that `retry-worker token new` printed"
		four = "expected four, name, role, last day (or -) and SHA-256 of the token, and the teams it is bound to if any; `retry-worker token new` prints such a line"
		none = "there is no token, expected at least one, or nobody could log in; `retry-worker token new --file tokens` adds one"
	)
	secret, _ := token(t, "x", access.Viewer)
	for content, want := range map[string][]string{
		"":              {"1: " + none},
		"\n# nothing\n": {"2: " + none},
		"maria":         {"1: the number of fields is 1, " + four},
		"maria operator - " + hashes[0] + " ti night":                  {"1: the number of fields is 6, " + four},
		"maria operator - " + hashes[0] + " ti,":                       {`1: teams are "ti,", expected the catalogue's teams such as faturamento,ti, without blanks`},
		"maria operator - " + hashes[0] + " " + secret:                 {"1: teams are a token (not shown), expected the catalogue's teams such as faturamento,ti, without blanks"},
		"joão operator - " + hashes[0]:                                 {`1: name is "joão", ` + name},
		"local admin - " + hashes[0]:                                   {`1: name is "local", which everybody is called where there are no tokens, expected another`},
		"maria " + strings.Repeat("x", 60) + " - " + hashes[0]:         {`1: role is "` + strings.Repeat("x", 60) + `", expected viewer, operator or admin`},
		"maria " + strings.Repeat("x", 61) + " - " + hashes[0]:         {`1: role is "` + strings.Repeat("x", 60) + `"…, expected viewer, operator or admin`},
		"maria Operator - " + hashes[0]:                                {`1: role is "Operator", expected viewer, operator or admin`},
		"maria viewer 31/01/2027 " + hashes[0]:                         {`1: last day is "31/01/2027", ` + last},
		"maria viewer 2027-02-30 " + hashes[0]:                         {`1: last day is "2027-02-30", ` + last},
		"maria viewer 0000-12-31 " + hashes[0]:                         {`1: last day is "0000-12-31", ` + last}, // whose end is the zero time
		"maria viewer - " + hashes[0][1:]:                              {"1: hash of length 63, " + hash},
		"maria viewer - " + hashes[0] + "#":                            {"1: hash of length 65, " + hash},
		"maria viewer - " + strings.ToUpper(hashes[0]):                 {"1: hash of length 64, " + hash},
		"maria viewer - " + secret:                                     {"1: the token itself stands here, expected its SHA-256; take the line out and make a new token, since this one may have been read"},
		"maria " + secret + " - " + hashes[0]:                          {"1: role is a token (not shown), expected viewer, operator or admin"},
		"maria " + strings.ToUpper(secret) + " - " + hashes[0]:         {"1: role is a token (not shown), expected viewer, operator or admin"},
		secret + " viewer - " + hashes[0]:                              {"1: name is a token (not shown), expected a person's or program's name"},
		"maria viewer - " + hashes[0] + "\nMaria admin - " + hashes[1]: {`2: name "Maria" stands on line 1 already, expected one token a name; take one of them out`},
		"maria viewer - " + hashes[0] + "\nana admin - " + hashes[0]:   {"2: the same hash stands on line 1 already, expected another token for each name; take one of them out"},
		"a_b x y z\n\nana admin - " + hashes[0] + "\n!!! viewer soon " + hashes[1]: {
			`1: role is "x", expected viewer, operator or admin`, `1: last day is "y", ` + last, "1: hash of length 1, " + hash,
			`4: name is "!!!", ` + name, `4: last day is "soon", ` + last,
		},
	} {
		tokens, err := access.Parse("tokens", []byte(content))
		for i := range want {
			want[i] = "tokens:" + want[i]
		}
		if err == nil || tokens != nil || err.Error() != strings.Join(want, "\n") {
			t.Errorf("%q: got\n%v\nwant\n%s", content, err, strings.Join(want, "\n"))
		}
	}
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

// The hash of the empty text would let in whoever shows nothing.
func TestNoTokenIsEmpty(t *testing.T) {
	_, err := access.Parse("tokens", []byte("maria admin - e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"))
	if err == nil || !strings.Contains(err.Error(), "tokens:1: the hash is that of the empty text") {
		t.Errorf("got %v", err)
	}
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
