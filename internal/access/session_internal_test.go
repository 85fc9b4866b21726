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

// twoPeople is a gate of two tokens, one of them for a while only, with a session each, whose ids are the same in every process
// that fuzzes.
func twoPeople(now func() time.Time) (*Gate, []*session) {
	all := &Tokens{all: []Token{
		{Identity: Identity{Name: "maria", Role: Operator}, hash: sha256.Sum256([]byte("hers"))},
		{Identity: Identity{Name: "ana", Role: Operator}, Expires: monday.Add(time.Hour), hash: sha256.Sum256([]byte("the other"))},
	}}
	var sessions []*session
	for i := range all.all {
		s := newSession(monday)
		s.ID = all.all[i].Name + "'s"
		sessions = append(sessions, s.of(&all.all[i]))
	}
	return New(Options{Now: now, Tokens: func() *Tokens { return all }}), sessions
}

// FuzzCookie: no value but those that were given out is a session.
func FuzzCookie(f *testing.F) {
	gate, sessions := twoPeople(func() time.Time { return monday })
	given := map[string]bool{}
	for _, s := range sessions {
		given[s.value] = true
		f.Add(s.value)
		f.Add(s.account.Name + "." + s.form())
	}
	for _, seed := range []string{"", ".", "a.b", strings.Repeat("A", 27), strings.Repeat("A", 43) + "." + strings.Repeat("A", 43), strings.Repeat(".", 600)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		s := gate.sessionOf(value)
		if given[value] && s == nil || s != nil && s.ID != s.account.Name+"'s" { // which another process may have given out
			t.Errorf("%q: session %v, given out %t", value, s, given[value])
		}
	})
}

// Whatever is changed in a session, at whatever time: it holds if nothing was changed and its time has not come.
func TestSessionProperty(t *testing.T) {
	now := monday
	gate, sessions := twoPeople(func() time.Time { return now })
	seeded.Check(t, func(r *rapid.T) {
		s := rapid.SampledFrom(sessions).Draw(r, "session")
		value := []byte(s.value)
		if rapid.Bool().Draw(r, "changed") {
			i := rapid.IntRange(0, len(value)-1).Draw(r, "at")
			value[i] = rapid.Byte().Filter(func(b byte) bool { return b != value[i] }).Draw(r, "to")
		}
		now = monday.Add(time.Duration(rapid.IntRange(-120, 14*3600).Draw(r, "seconds")) * time.Second)
		end := monday.Add(12 * time.Hour)
		if s.account.Name == "ana" {
			end = monday.Add(time.Hour)
		}
		want := string(value) == s.value && now.Before(end) && !monday.After(now.Add(time.Minute))
		got := gate.sessionOf(string(value))
		if (got != nil) != want {
			r.Fatalf("%q at %s: session %v, want %v", value, now, got != nil, want)
		}
		if got != nil && (got.account.Name != s.account.Name || got.form() != s.form() || !got.ends().Equal(end)) {
			r.Fatalf("got %s until %s", got.account.Name, got.ends())
		}
	})
}
