package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// tokenPrefix lets people and secret scanners recognise a token.
	tokenPrefix = "rwt_"
	tokenBytes  = 32
)

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
	Name string
	Role Role
	// Teams are those that it is bound to; empty: none.
	Teams Teams
	// Expires is the first instant at which it is no longer valid; the zero time: never.
	Expires time.Time

	hash [sha256.Size]byte
}

// NewToken returns a new token: the secret for its owner, and what the file keeps. The error says what is wrong with
// the name or the role.
func NewToken(name string, role Role, expires time.Time) (secret string, t Token, err error) {
	if err := CheckName(name); err != nil {
		return "", Token{}, fmt.Errorf("name is %w", err)
	}
	if role < Viewer || role > Admin {
		return "", Token{}, fmt.Errorf("role is %v, expected viewer, operator or admin", role)
	}
	b := make([]byte, tokenBytes)
	_, _ = rand.Read(b) // never fails: the program ends where there is no randomness
	secret = tokenPrefix + tokenText.EncodeToString(b)
	return secret, Token{Name: name, Role: role, Expires: expires, hash: sha256.Sum256([]byte(secret))}, nil
}

// CheckName returns what is wrong with an account's name, in words that follow "name is".
func CheckName(name string) error {
	switch {
	case !nameForm.MatchString(name):
		return fmt.Errorf("%s, expected %s", shown(name), nameWords)
	case strings.EqualFold(name, LocalName):
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
	return strings.TrimSpace(strings.Join([]string{t.Name, t.Role.String(), t.Until(), hex.EncodeToString(t.hash[:]),
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
