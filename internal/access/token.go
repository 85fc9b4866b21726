package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// tokenPrefix lets people, and the scanners that look for secrets, know a token by sight.
	tokenPrefix = "rwt_"
	tokenBytes  = 32
)

var (
	nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)
	hashForm = regexp.MustCompile(`^[0-9a-f]{64}$`)
	daysForm = regexp.MustCompile(`^([1-9]\d{0,3})d$`)
	// tokenText is letters and digits only: it can be marked by a double click, and read out.
	tokenText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
)

const nameWords = "1 to 64 letters (without accents), digits and . _ @ -, a letter or digit first"

// Token is what the tokens file keeps of one: not itself, but its hash.
//
// A plain SHA-256 is right here. A slow, salted hash protects what people choose, because that can be guessed; these
// are 256 random bits, which nobody tries out, and they are checked with every request.
type Token struct {
	Name string
	Role Role
	// Teams that it is bound to; empty is none.
	Teams Teams
	// Expires is the first moment at which it does not hold any more; the zero time: never.
	Expires time.Time

	hash [sha256.Size]byte
}

// NewToken makes a token and returns it, for its owner, and what the file keeps of it. Its error says what is wrong
// with the name or the role.
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

// CheckName says what is wrong with a token's name, in words that follow "name is".
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

// Expired reports whether the token does not hold any more at now.
func (t *Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// Until returns the last day (UTC) on which the token holds, such as 2027-01-31; - where it never ends.
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

// ParseExpiry returns when a token made at now no longer holds: after a number of days (90d, up to 3650d), after a day
// (2027-01-31, which it still holds, by UTC), or never (the zero time). Days end at midnight UTC.
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

// Tokens are those of one file; never changed, so safe for concurrent use.
type Tokens struct {
	all []Token
}

// Len returns how many there are, the expired ones included.
func (t *Tokens) Len() int { return len(t.all) }

// Expired returns how many hold no longer at now.
func (t *Tokens) Expired(now time.Time) (n int) {
	for i := range t.all {
		if t.all[i].Expired(now) {
			n++
		}
	}
	return n
}

// What is wrong with a token that somebody shows.
var (
	errUnknown = errors.New("unknown")
	errExpired = errors.New("expired")
)

// find returns the token that the secret is; errUnknown, or errExpired with the token. It looks at all of them, each in
// constant time, so that the time taken tells nothing of the hashes.
func (t *Tokens) find(secret string, now time.Time) (*Token, error) {
	hash := sha256.Sum256([]byte(secret))
	found := -1
	for i := range t.all {
		same := subtle.ConstantTimeCompare(hash[:], t.all[i].hash[:])
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	switch {
	case found < 0:
		return nil, errUnknown
	case t.all[found].Expired(now):
		return &t.all[found], errExpired
	default:
		return &t.all[found], nil
	}
}

// named returns the token of that name, nil if there is none. Names are no secrets.
func (t *Tokens) named(name string) *Token {
	for i := range t.all {
		if t.all[i].Name == name {
			return &t.all[i]
		}
	}
	return nil
}
