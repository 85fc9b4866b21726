package access

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"retry-worker/internal/smallfile"
)

const maxFileBytes = 256 << 10

// FileError lists what is wrong with a tokens file, in its order: each `FILE:LINE: what is found, expected …, what to
// do`. It never shows a token or a hash.
type FileError struct{ problems []string }

// Error returns the problems, one a line.
func (e *FileError) Error() string { return strings.Join(e.problems, "\n") }

// Load reads the tokens file at path. The error is a *FileError if the content is wrong, and otherwise one line: the
// file cannot be read, others can read or replace it, or it has more than 256 KiB.
//
// Whoever can read the file can sign sessions with its hashes (see session), so it is as secret as the tokens.
func Load(path string) (*Tokens, error) {
	content, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, content)
}

func readFile(path string) ([]byte, error) {
	content, err := smallfile.ReadSecret(path, maxFileBytes)
	switch {
	case errors.Is(err, smallfile.ErrTooLong):
		return nil, fmt.Errorf("tokens file %s has more than %d KiB; take out the tokens that have expired", path,
			maxFileBytes>>10)
	case errors.Is(err, smallfile.ErrExposed):
		return nil, fmt.Errorf("tokens file %s lets in whoever reads it, and %w", path, err)
	case err != nil:
		return nil, fmt.Errorf("tokens file %s cannot be read: %w; name a readable file, `retry-worker token new --file` "+
			"makes one", path, err)
	}
	return content, nil
}

// Parse reads a tokens file's content. Each line has a token's name, role, last day (2027-01-31, by UTC; or -), SHA-256
// in lower-case hex and, if it is bound to any, teams (faturamento,ti), separated by white space. A # begins a comment.
// source names the file in problems. The error is a *FileError with all problems. To have no token is one: nobody could
// log in.
func Parse(source string, content []byte) (*Tokens, error) {
	p := parse(source, content)
	if len(p.tokens) == 0 && len(p.wrong.problems) == 0 {
		p.line = max(p.line, 1)
		p.problem("there is no token, expected at least one, or nobody could log in; `retry-worker token new --file %s` "+
			"adds one", source)
	}
	if len(p.wrong.problems) > 0 {
		return nil, &p.wrong
	}
	return &Tokens{p.tokens}, nil
}

// parse is Parse for a file that may have no tokens.
func parse(source string, content []byte) *parser {
	p := &parser{source: source, names: map[string]int{}, hashes: map[string]int{}}
	p.lines(content)
	return p
}

type parser struct {
	source string
	line   int
	tokens []Token
	// names and hashes hold the lines of names in lower case, and of hashes.
	names, hashes map[string]int
	wrong         FileError
}

func (p *parser) problem(format string, args ...any) {
	p.wrong.problems = append(p.wrong.problems, fmt.Sprintf("%s:%d: ", p.source, p.line)+fmt.Sprintf(format, args...))
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
			p.problem("the number of fields is %d, expected four, name, role, last day (or -) and SHA-256 of the token, and the teams it "+
				"is bound to if any; `retry-worker token new` prints such a line", len(fields))
		}
	}
}

// entry reads one token's fields. It checks each of them, so that all problems are told at once.
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
		if err != nil || day.Year() < 2000 { // the zero time would mean never
			p.problem("last day is %s, expected a day such as 2027-01-31, or - for never", shown(fields[2]))
		}
		t.Expires = endOfDay(day)
	}
	switch at, twice := p.hashes[fields[3]]; {
	case strings.Contains(strings.ToLower(fields[3]), tokenPrefix):
		p.problem("the token itself stands here, expected its SHA-256; take the line out and make a new token, since this " +
			"one may have been read")
	case !hashForm.MatchString(fields[3]):
		p.problem("hash of length %d, expected the SHA-256 of the token: 64 of 0-9 and a-f; copy the whole line that "+
			"`retry-worker token new` printed", len(fields[3]))
	case fields[3] == emptyHash:
		p.problem("the hash is that of the empty text, expected that of a token: anybody would be let in; take the line out, " +
			"and make a token by `retry-worker token new`")
	case twice:
		p.problem("the same hash stands on line %d already, expected another token for each name; take one of them out", at)
	default:
		p.hashes[fields[3]] = p.line
		_, _ = hex.Decode(t.hash[:], []byte(fields[3])) // its form was checked
	}
	if len(fields) == 5 {
		if t.Teams, err = ParseTeams(fields[4]); err != nil {
			p.problem("teams are %v", err)
		}
	}
	p.tokens = append(p.tokens, t)
}

// emptyHash is the SHA-256 of the empty text.
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// Append adds a token to the file at path, or creates the file, readable by its owner only. The error is a *FileError
// if the name is taken or the file has problems already, and otherwise one line. A file that exists is not replaced, so
// that it keeps its owner.
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
	old := parse(path, content)
	if old.line = old.names[strings.ToLower(t.Name)]; old.line > 0 {
		old.problem("there is a token named %q, expected another name; to replace that token, take its line out first", t.Name)
	}
	if len(old.wrong.problems) > 0 {
		return &old.wrong
	}
	return appendTo(path, line)
}

const fileHead = "# Who may use retry-worker's console and API, a token each: name, role (viewer, operator, admin), " +
	"last day, SHA-256, teams.\n" +
	"# `retry-worker token new --file` adds one; a line taken out ends that token and its sessions.\n"

// appendTo writes text in one piece and then checks the whole file, to which others may have written at the same time.
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

// Open loads the tokens file and watches it. A change takes effect as a whole or not at all, within 10 s, for open
// sessions too. A file that is gone or has no tokens is rejected like a wrong one: to shut everybody out, leave one
// token that nobody has, or stop the worker.
func Open(path string) (*smallfile.Watcher[Tokens], error) {
	return smallfile.Watch(path, readFile, Parse)
}
