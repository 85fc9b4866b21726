package access

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"retry-worker/internal/reload"
	"retry-worker/internal/smallfile"
)

const (
	maxFileBytes = 256 << 10
	// maxProblems that are listed; who has more has one cause for many.
	maxProblems = 20
	// exposed are the permissions that a tokens file must not give: any to everybody, or that of changing it to its
	// group. The group may read, which is how Kubernetes gives a Secret to a container that is not root.
	exposed fs.FileMode = 0o027
)

// FileError is everything that is wrong with a tokens file, in its order.
type FileError struct {
	// Problems, each `FILE:LINE: what is found, expected …, what to do`, at most 20; never with a token or a hash.
	Problems []string
	// More that are not listed.
	More int
}

// Error returns the problems, a line each.
func (e *FileError) Error() string {
	text := strings.Join(e.Problems, "\n")
	if e.More > 0 {
		text += fmt.Sprintf("\n%d more problems are not listed", e.More)
	}
	return text
}

// Load reads the tokens file at path. Its error is a *FileError where the content is wrong, and otherwise one line: the
// file cannot be read, others can read or replace it, or it has more than 256 KiB.
//
// Whoever can read the file can sign sessions by what it holds (see session), so it is as secret as the tokens.
func Load(path string) (*Tokens, error) {
	content, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, content)
}

func readFile(path string) ([]byte, error) {
	content, mode, err := smallfile.ReadRegular(path, maxFileBytes)
	if errors.Is(err, smallfile.ErrTooLong) {
		return nil, fmt.Errorf("tokens file %s has more than %d KiB; take out the tokens that have expired", path,
			maxFileBytes>>10)
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	if mode = mode.Perm(); mode&exposed != 0 {
		return nil, fmt.Errorf("tokens file %s has mode %04o, expected 0600: others than its owner can read or change it, "+
			"and it lets in whoever can; `chmod 600` it (a Kubernetes Secret: defaultMode 0440), and make new tokens if "+
			"others may have read it", path, mode)
	}
	return content, checkFolders(path)
}

func unreadable(path string, err error) error {
	return fmt.Errorf("tokens file %s cannot be read: %w; name a readable file, `retry-worker token new --file` makes one",
		path, smallfile.Cause(err))
}

// maxLinks are followed on the way to a file, as by the system.
const maxLinks = 40

// checkFolders refuses a file that is another's, or in whose place others could put another: it, each folder that its
// path leads through and each link there must be this user's or root's, and no folder everybody's to write. In one
// with the sticky bit, such as that of a Kubernetes Secret, nobody takes away what is another's.
func checkFolders(path string) error {
	at, rest := "/", path
	if !filepath.IsAbs(path) {
		here, err := os.Getwd()
		if err != nil {
			return unreadable(path, err)
		}
		rest = here + "/" + path
	}
	for links := 0; ; {
		info, err := os.Lstat(at)
		if err != nil {
			return unreadable(path, err)
		}
		if err := checkOwner(path, at, info); err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(at)
			if links++; err != nil || links > maxLinks {
				return unreadable(path, cmp.Or(err, error(syscall.ELOOP)))
			}
			if at, rest = filepath.Dir(at), to+"/"+rest; filepath.IsAbs(to) {
				at = "/"
			}
		}
		name, more, _ := strings.Cut(strings.TrimLeft(rest, "/"), "/")
		if name == "" {
			return nil
		}
		at, rest = filepath.Join(at, name), more // of a place without links .. is what the system takes it for
	}
}

// checkOwner refuses what stands at a place on the way to the file.
func checkOwner(path, at string, info fs.FileInfo) error {
	if of, is := info.Sys().(*syscall.Stat_t); is && of.Uid != 0 && int(of.Uid) != os.Geteuid() {
		return fmt.Errorf("tokens file %s: %s belongs to the user %d, expected this one (%d) or root: whoever owns it lets "+
			"in whom they like; `chown` it, and look at who is in the file", path, at, of.Uid, os.Geteuid())
	}
	if mode := info.Mode(); info.IsDir() && mode&0o002 != 0 && mode&fs.ModeSticky == 0 {
		return fmt.Errorf("tokens file %s stands in the folder %s, which has mode %04o: everybody may write there and "+
			"could put another in its place; `chmod o-w` that folder, and look at who is in the file", path, at, mode.Perm())
	}
	return nil
}

// Parse reads a tokens file's content: a line each with name, role, last day (2027-01-31, by UTC; or -), the SHA-256 of
// the token in lower-case hex and, where it is bound to any, its teams (faturamento,ti), separated by white space; what
// follows a # is a comment. source names the file in the problems. Its error is a *FileError with all of them. A file
// without tokens is one: nobody could log in.
func Parse(source string, content []byte) (*Tokens, error) {
	p := parser{source: source, names: map[string]int{}, hashes: map[[sha256.Size]byte]int{}}
	p.lines(content)
	if len(p.tokens) == 0 && len(p.wrong.Problems) == 0 {
		p.line = max(p.line, 1)
		p.problem("there is no token, expected at least one, or nobody could log in; `retry-worker token new --file %s` "+
			"adds one", source)
	}
	if len(p.wrong.Problems) > 0 {
		return nil, &p.wrong
	}
	return &Tokens{p.tokens, sha256.Sum256(content)}, nil
}

type parser struct {
	source string
	line   int
	tokens []Token
	names  map[string]int // by the name in lower case: the line it stands on
	hashes map[[sha256.Size]byte]int
	wrong  FileError
}

func (p *parser) problem(format string, args ...any) {
	if len(p.wrong.Problems) == maxProblems {
		p.wrong.More++
		return
	}
	p.wrong.Problems = append(p.wrong.Problems, fmt.Sprintf("%s:%d: ", p.source, p.line)+fmt.Sprintf(format, args...))
}

func (p *parser) lines(content []byte) {
	for line := range strings.Lines(string(content)) {
		p.line++
		fields := strings.Fields(line)
		for i, field := range fields {
			if field[0] == '#' {
				fields = fields[:i]
				break
			}
		}
		switch len(fields) {
		case 0:
		case 4, 5:
			p.entry(fields)
		default:
			p.problem("found %s, expected four, name, role, last day (or -) and SHA-256 of the token, and the teams it is "+
				"bound to if any; `retry-worker token new` prints such a line", counted(len(fields)))
		}
	}
}

func counted(n int) string {
	if n == 1 {
		return "one field"
	}
	return fmt.Sprintf("%d fields", n)
}

// entry reads one token's fields; each of them is checked, so that all that is wrong is said at once.
func (p *parser) entry(fields []string) {
	t := Token{Name: fields[0]}
	if err := CheckName(t.Name); err != nil {
		p.problem("name is %v", err)
	} else if at, twice := p.names[strings.ToLower(t.Name)]; twice {
		p.problem("name %s stands on line %d already, expected one token a name; take one of them out", shown(t.Name), at)
	} else {
		p.names[strings.ToLower(t.Name)] = p.line
	}
	var err error
	if t.Role, err = ParseRole(fields[1]); err != nil {
		p.problem("role is %v", err)
	}
	if fields[2] != "-" {
		day, err := time.Parse(time.DateOnly, fields[2])
		if err != nil || day.Year() < 2000 { // the zero time would be never
			p.problem("last day is %s, expected a day such as 2027-01-31, or - for never", shown(fields[2]))
		}
		t.Expires = endOfDay(day)
	}
	p.hash(&t, fields[3])
	if len(fields) == 5 {
		if t.Teams, err = ParseTeams(fields[4]); err != nil {
			p.problem("teams are %v", err)
		}
	}
	p.tokens = append(p.tokens, t)
}

func (p *parser) hash(t *Token, field string) {
	switch {
	case strings.Contains(strings.ToLower(field), tokenPrefix):
		p.problem("the token itself stands here, expected its SHA-256; take the line out and make a new token, since this " +
			"one may have been read")
		return
	case !hashForm.MatchString(field):
		p.problem("hash of length %d, expected the SHA-256 of the token: 64 of 0-9 and a-f; copy the whole line that "+
			"`retry-worker token new` printed", len(field))
		return
	}
	_, _ = hex.Decode(t.hash[:], []byte(field)) // its form was checked
	if t.hash == sha256.Sum256(nil) {
		p.problem("the hash is that of the empty text, expected that of a token: anybody would be let in; take the line out, " +
			"and make a token by `retry-worker token new`")
		return
	}
	if at, twice := p.hashes[t.hash]; twice {
		p.problem("the same hash stands on line %d already, expected another token for each name; take one of them out", at)
		return
	}
	p.hashes[t.hash] = p.line
}

// DuplicateError says that a name is taken.
type DuplicateError struct{ Path, Name string }

// Error returns one line that says what to do.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("%s has a token named %q already, expected another name; to replace that token, take its line "+
		"out first", e.Path, e.Name)
}

// Append adds a token to the file at path, which is made, for its owner only, if it is not there. Its error is a
// *DuplicateError if the name is taken, a *FileError if the file is wrong as it stands, and otherwise one line. The
// file is added to, not replaced, so that it stays its owner's whoever does this.
func Append(path string, t *Token) error {
	content, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return appendTo(path, fileHead+t.Line()+"\n")
	}
	if err != nil {
		return err
	}
	line := t.Line() + "\n"
	if len(content) > 0 && !bytes.HasSuffix(content, []byte("\n")) {
		line = "\n" + line
	}
	old, err := Parse(path, content)
	switch {
	case err == nil && old.taken(t.Name):
		return &DuplicateError{path, t.Name}
	case err != nil && holdsTokens(content):
		return err
	}
	return appendTo(path, line)
}

const fileHead = "# Who may use retry-worker's console and API, a token each: name, role (viewer, operator, admin), " +
	"last day, SHA-256, teams.\n" +
	"# `retry-worker token new --file` adds one; a line taken out ends that token and its sessions.\n"

// holdsTokens reports whether anything but comments stands in a file.
func holdsTokens(content []byte) bool {
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return true
		}
	}
	return false
}

// taken reports whether there is a token of that name, in whatever case.
func (t *Tokens) taken(name string) bool {
	return slices.ContainsFunc(t.all, func(other Token) bool { return strings.EqualFold(other.Name, name) })
}

// appendTo writes text in one piece and looks at the whole again: somebody else may have written at the same time.
func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return unwritable(path, err)
	}
	_, err = f.WriteString(text)
	if err = cmp.Or(err, f.Sync(), f.Close()); err != nil {
		return unwritable(path, err)
	}
	_, err = Load(path)
	return err
}

func unwritable(path string, err error) error {
	return fmt.Errorf("tokens file %s cannot be written: %w; name a file in a directory that is there and that you may "+
		"write", path, smallfile.Cause(err))
}

// Watcher takes a changed tokens file up while the program runs: whole or not at all. A token taken out of it, and one
// whose role was lowered, has its effect within 11 s, on its sessions too. A file that is gone or without tokens is
// rejected like a wrong one: to shut everybody out, leave one token that nobody has, or stop the worker.
type Watcher = reload.Watcher[Tokens]

// WatchHooks tell what a Watcher did.
type WatchHooks = reload.Hooks[Tokens]

// Watch makes a Watcher of the file at path, of which first was loaded.
func Watch(path string, first *Tokens, hooks WatchHooks) *Watcher {
	return reload.Watch(reload.File[Tokens]{Path: path, Read: readFile, Parse: Parse}, first, first.sum, hooks)
}
