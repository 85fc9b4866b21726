package access

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/smallfile"
)

// tokenPrefix lets people and secret scanners recognise a token.
const tokenPrefix = "rwt_"

var (
	nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)
	hashForm = regexp.MustCompile(`^[0-9a-f]{64}$`)
	daysForm = regexp.MustCompile(`^([1-9]\d{0,3})d$`)
	// tokenText has letters and digits only, so that a double click selects a token, and people can read it out.
	tokenText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
)

const nameWords = "1 to 64 letters (without accents), digits and . _ @ -, a letter or digit first"

// Token is a token as the tokens file keeps it: only its hash.
//
// A plain SHA-256 is right here. A slow, salted hash protects what people choose, because that can be guessed. A token
// has 256 random bits, which nobody can try out, and is checked with every request.
type Token struct {
	Identity
	// Expires is the first instant at which it is no longer valid; the zero time: never.
	Expires time.Time

	hash [sha256.Size]byte
}

// NewToken returns a new token: the secret for its owner, and what the file keeps. CheckName must take the name.
func NewToken(name string, role Role, expires time.Time) (secret string, t Token) {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails: the program ends where there is no randomness
	secret = tokenPrefix + tokenText.EncodeToString(b)
	return secret, Token{Identity{Name: name, Role: role}, expires, sha256.Sum256([]byte(secret))}
}

// CheckName returns what is wrong with an account's name, in words that follow "name is".
func CheckName(name string) error {
	switch {
	case !nameForm.MatchString(name):
		return fmt.Errorf("%s, expected %s", shown(name), nameWords)
	case strings.EqualFold(name, localName):
		return fmt.Errorf("%q, which everybody is called where there are no tokens, expected another", name)
	case strings.EqualFold(name, "me"), strings.EqualFold(name, "nobody"):
		return fmt.Errorf("%q, which lists of dead letters take for another word, expected another", name)
	case strings.HasPrefix(strings.ToLower(name), tokenPrefix):
		return fmt.Errorf("%s, expected a person's or program's name", shown(name))
	}
	return nil
}

// Expired reports whether the token is no longer valid at now.
func (t *Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// Until returns the last day (UTC) on which the token is valid, such as 2027-01-31; - if it never expires.
func (t *Token) Until() string {
	if t.Expires.IsZero() {
		return "-"
	}
	return t.Expires.Add(-time.Nanosecond).UTC().Format(time.DateOnly)
}

// Line returns the token as the file has it, without a line break.
func (t *Token) Line() string {
	return strings.TrimSpace(strings.Join([]string{t.Name, string(t.Role), t.Until(), hex.EncodeToString(t.hash[:]),
		string(t.Teams)}, " "))
}

// ParseExpiry returns when a token made at now expires: after a number of days (90d, up to 3650d), after a day
// (2027-01-31), or never (the zero time). Days end at midnight UTC.
func ParseExpiry(text string, now time.Time) (time.Time, error) {
	const most = 3650
	wrong := fmt.Errorf("%s, expected days such as 90d (up to %dd), a day to come such as %s, or never",
		shown(text), most, now.UTC().AddDate(1, 0, 0).Format(time.DateOnly))
	if text == "never" {
		return time.Time{}, nil
	}
	if days := daysForm.FindStringSubmatch(text); days != nil {
		n, _ := strconv.Atoi(days[1]) // its form was checked
		if n > most {
			return time.Time{}, wrong
		}
		return endOfDay(now.UTC().AddDate(0, 0, n)), nil
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil || !now.Before(endOfDay(day)) {
		return time.Time{}, wrong
	}
	return endOfDay(day), nil
}

// endOfDay returns the midnight (UTC) that ends the day.
func endOfDay(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, time.UTC)
}

// Tokens are the tokens of one file. They never change, and are safe for concurrent use.
type Tokens struct {
	all []Token
}

// Len returns the number of tokens, including expired ones.
func (t *Tokens) Len() int { return len(t.all) }

// Expired returns the number of tokens that have expired at now.
func (t *Tokens) Expired(now time.Time) (n int) {
	for i := range t.all {
		if t.all[i].Expired(now) {
			n++
		}
	}
	return n
}

// find returns the token of a secret, valid or expired; nil if there is none. It compares all of them, each in constant
// time, so that the time taken tells nothing about the hashes.
func (t *Tokens) find(secret string) *Token {
	hash := sha256.Sum256([]byte(secret))
	found := -1
	for i := range t.all {
		same := subtle.ConstantTimeCompare(hash[:], t.all[i].hash[:])
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	if found < 0 {
		return nil
	}
	return &t.all[found]
}

// named returns the token of that name; nil if there is none. Names are not secret.
func (t *Tokens) named(name string) *Token {
	if i := slices.IndexFunc(t.all, func(t Token) bool { return t.Name == name }); i >= 0 {
		return &t.all[i]
	}
	return nil
}

const maxFileBytes = 256 << 10

// FileError lists what is wrong with a tokens file, in its order: each `FILE:LINE: what is found, expected …, what to
// do`. It never shows a token or a hash.
type FileError []string

// Error returns the problems, one a line.
func (e FileError) Error() string { return strings.Join(e, "\n") }

// Load reads the tokens file at path. The error is a FileError if the content is wrong, and otherwise one line: the
// file cannot be read, others can read or replace it, or it has more than 256 KiB.
//
// Whoever can read the file can seal sessions with its hashes (see session), so it is as secret as the tokens.
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
// source names the file in problems. The error is a FileError with all problems. To have no token is one: nobody could
// log in.
func Parse(source string, content []byte) (*Tokens, error) {
	p := &parser{source: source, line: 1, names: map[string]int{}, hashes: map[string]int{}}
	for i, line := range slices.Collect(strings.Lines(string(content))) {
		p.line = i + 1
		fields := strings.Fields(line)
		if end := slices.IndexFunc(fields, func(field string) bool { return field[0] == '#' }); end >= 0 {
			fields = fields[:end]
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
	if len(p.tokens) == 0 && p.wrong == nil {
		p.problem("there is no token, expected at least one, or nobody could log in; `retry-worker token new --file %s` "+
			"adds one", source)
	}
	if p.wrong != nil {
		return nil, p.wrong
	}
	return &Tokens{p.tokens}, nil
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
	p.wrong = append(p.wrong, fmt.Sprintf("%s:%d: ", p.source, p.line)+fmt.Sprintf(format, args...))
}

// entry reads one token's fields. It checks each of them, so that all problems are told at once.
func (p *parser) entry(fields []string) {
	t := Token{Identity: Identity{Name: fields[0]}}
	if err := CheckName(t.Name); err != nil {
		p.problem("name is %v", err)
	} else if at, twice := p.names[strings.ToLower(t.Name)]; twice {
		p.problem("name %s stands on line %d already, expected another name, or that line taken out", shown(t.Name), at)
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
	case fields[3] == fmt.Sprintf("%x", sha256.Sum256(nil)):
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

const fileHead = "# Who may use retry-worker's console and API, a token each: name, role (viewer, operator, admin), " +
	"last day, SHA-256, teams.\n" +
	"# `retry-worker token new --file` adds one; a line taken out ends that token and its sessions.\n"

// Append adds a token to the file at path, or creates the file, readable by its owner only. The error is a FileError if
// the name is taken or the file has problems already, and otherwise one line. A file that exists is not replaced, so
// that it keeps its owner.
func Append(path string, t *Token) error {
	added := t.Line() + "\n"
	content, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		added = fileHead + added
	case err != nil:
		return err
	case len(content) > 0 && !bytes.HasSuffix(content, []byte("\n")):
		added = "\n" + added
	}
	if _, err := Parse(path, append(content, added...)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.WriteString(added)
		err = cmp.Or(err, f.Sync(), f.Close())
	}
	if err != nil {
		return fmt.Errorf("tokens file %s cannot be written: %w; name a file in a directory that is there and that you may "+
			"write", path, smallfile.Cause(err))
	}
	_, err = Load(path) // others may have written at the same time
	return err
}

// Open loads the tokens file and watches it. A change takes effect as a whole or not at all, within 10 s, for open
// sessions too. A file that is gone or has no tokens is rejected like a wrong one: to shut everybody out, leave one
// token that nobody has, or stop the worker.
func Open(path string) (*smallfile.Watcher[Tokens], error) {
	return smallfile.Watch(path, readFile, Parse)
}
