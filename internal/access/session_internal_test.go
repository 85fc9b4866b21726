package access

import (
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"retry-worker/internal/testkit/seeded"
)

var monday = time.Date(2026, 11, 2, 10, 30, 0, 0, time.UTC)

// twoPeople are tokens, one of them for a while only, with a session each; the same in every process that fuzzes.
func twoPeople() (*Tokens, []session) {
	all := &Tokens{all: []Token{
		{Name: "maria", Role: Operator, hash: sha256.Sum256([]byte("hers"))},
		{Name: "ana", Role: Operator, Expires: monday.Add(time.Hour), hash: sha256.Sum256([]byte("the other"))},
	}}
	var sessions []session
	for i := range all.all {
		s := newSession(&all.all[i], monday)
		b, _ := sessionText.DecodeString(s.payload)
		copy(b, "sixteen bytes id") // in place of random ones
		s.payload = sessionText.EncodeToString(b)
		sessions = append(sessions, s)
	}
	return all, sessions
}

// FuzzCookie: no value but those that were given out is a session.
func FuzzCookie(f *testing.F) {
	tokens, sessions := twoPeople()
	given := map[string]string{}
	for _, s := range sessions {
		given[s.value()] = s.token.Name
		f.Add(s.value())
		f.Add(s.payload + "." + s.formToken())
	}
	for _, seed := range []string{"", ".", "a.b", strings.Repeat("A", 27), strings.Repeat("A", 43) + "." + strings.Repeat("A", 43), strings.Repeat(".", 600)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		s := tokens.session(value, monday)
		name, ours := given[value]
		if (s != nil) != ours || ours && s.token.Name != name {
			t.Errorf("%q: session %v, given out %v", value, s, ours)
		}
	})
}

// Whatever is changed in a session, at whatever time: it holds if nothing was changed and its time has not come.
func TestSessionProperty(t *testing.T) {
	tokens, sessions := twoPeople()
	seeded.Check(t, func(r *rapid.T) {
		s := rapid.SampledFrom(sessions).Draw(r, "session")
		value := []byte(s.value())
		if rapid.Bool().Draw(r, "changed") {
			i := rapid.IntRange(0, len(value)-1).Draw(r, "at")
			value[i] = rapid.Byte().Filter(func(b byte) bool { return b != value[i] }).Draw(r, "to")
		}
		now := monday.Add(time.Duration(rapid.IntRange(-120, 14*3600).Draw(r, "seconds")) * time.Second)
		end := monday.Add(12 * time.Hour)
		if s.token.Name == "ana" {
			end = monday.Add(time.Hour)
		}
		want := string(value) == s.value() && now.Before(end) && !monday.After(now.Add(time.Minute))
		got := tokens.session(string(value), now)
		if (got != nil) != want {
			r.Fatalf("%q at %s: session %v, want %v", value, now, got != nil, want)
		}
		if got != nil && (got.token.Name != s.token.Name || got.formToken() != s.formToken() || !got.ends.Equal(end)) {
			r.Fatalf("got %s until %s", got.token.Name, got.ends)
		}
	})
}
