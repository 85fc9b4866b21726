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
		"maria":         {"1: found one field, " + four},
		"maria operator - " + hashes[0] + " ti night":                  {"1: found 6 fields, " + four},
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

func TestParseListsTwentyProblems(t *testing.T) {
	_, err := access.Parse("tokens", []byte(strings.Repeat("wrong\n", 30)))
	wrong, is := errors.AsType[*access.FileError](err)
	if !is || len(wrong.Problems) != 20 || wrong.More != 10 || !strings.HasSuffix(err.Error(), "\n10 more problems are not listed") {
		t.Errorf("got %v", err)
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
			if wrong, is := errors.AsType[*access.FileError](err); !is || len(wrong.Problems) == 0 || len(wrong.Problems) > 20 || tokens != nil {
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

func TestLoadRefusesWhatOthersReach(t *testing.T) {
	line := "maria operator - " + hashes[0]
	for mode, want := range map[os.FileMode]bool{
		0o600: true, 0o400: true, 0o440: true, 0o640: true, // a Kubernetes Secret is its group's
		0o644: false, 0o604: false, 0o602: false, 0o660: false, 0o620: false, 0o601: false, 0o777: false,
	} {
		path := tokensFile(t, mode, line)
		tokens, err := access.Load(path)
		switch {
		case want && (err != nil || tokens.Len() != 1):
			t.Errorf("%04o: %v", mode, err)
		case !want && (err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%s has mode %04o, expected 0600", path, mode)) || !strings.Contains(err.Error(), "`chmod 600` it")):
			t.Errorf("%04o: got %v", mode, err)
		}
	}
}

// Who may write in its folder could put another file in its place, by a link too.
func TestLoadRefusesAFolderOfEverybody(t *testing.T) {
	own, open := t.TempDir(), filepath.Join(t.TempDir(), "open")
	testkit.Must(t, os.Mkdir(open, 0o700))
	line := []byte("maria operator - " + hashes[0])
	testkit.Must(t, os.WriteFile(filepath.Join(own, "tokens"), line, 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(open, "tokens"), line, 0o600))
	testkit.Must(t, os.Symlink(filepath.Join(open, "tokens"), filepath.Join(own, "link")))
	for mode, refused := range map[os.FileMode]bool{
		0o755: false, 0o775: false, 0o777 | os.ModeSticky: false, // a Kubernetes Secret's
		0o777: true, 0o757: true, 0o703: true,
	} {
		testkit.Must(t, os.Chmod(open, mode))
		for _, path := range []string{filepath.Join(open, "tokens"), filepath.Join(own, "link")} {
			_, err := access.Load(path)
			if refused != (err != nil) || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("stands in the folder %s, which has mode %04o", open, mode)) {
				t.Errorf("%v, %s: got %v, expected that it is refused: %t", mode, filepath.Base(path), err, refused)
			}
		}
		if _, err := access.Load(filepath.Join(own, "tokens")); err != nil {
			t.Error(err)
		}
	}
}

// Nor does it help that the folder of everybody stands further up, or on the way of a link, or that its owner is a
// stranger, as is the file's or a link's.
func TestLoadRefusesWhatAStrangerReaches(t *testing.T) {
	const stranger = 4711
	for name, c := range map[string]struct {
		mode  os.FileMode // of the place below
		owner string      // what is the stranger's; empty: nothing
		load  string
		ok    bool
	}{
		"nobody":                          {0o755, "", "a/b/tokens", true},
		"further up":                      {0o777, "", "a/b/tokens", false},
		"further up, by a link":           {0o777, "", "link", false},
		"further up, by a link's own way": {0o777, "", "other/link", false},
		"by a way back":                   {0o777, "", "other/linked/../tokens", false},
		"with the sticky bit":             {0o777 | os.ModeSticky, "", "a/b/tokens", true},
		"a stranger's file":               {0o755, "a/b/tokens", "a/b/tokens", false},
		"a stranger's folder":             {0o755, "a", "a/b/tokens", false},
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
			testkit.Must(t, os.WriteFile(at("a/b/tokens"), []byte("maria operator - "+hashes[0]), 0o600))
			testkit.Must(t, os.Symlink("a/b/tokens", at("link")))
			testkit.Must(t, os.Symlink("../a/b/../b/tokens", at("other/link")))
			testkit.Must(t, os.Symlink("../a/b/c", at("other/linked")))
			testkit.Must(t, os.Chmod(at("a"), c.mode))
			if c.owner != "" {
				testkit.Must(t, os.Lchown(at(c.owner), stranger, stranger))
			}
			if _, err := access.Load(dir + "/" + c.load); (err == nil) != c.ok {
				t.Errorf("got %v, expected that it is taken: %t", err, c.ok)
			}
		})
	}
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
	_, is := errors.AsType[*access.DuplicateError](access.Append(path, &other))
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
