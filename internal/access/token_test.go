package access_test

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/testkit"
)

var start = time.Date(2026, 11, 2, 10, 30, 0, 0, time.UTC)

// token is a new one that never ends.
func token(t *testing.T, name string, role access.Role) (string, access.Token) {
	t.Helper()
	return tokenUntil(t, name, role, "never")
}

func tokenUntil(t *testing.T, name string, role access.Role, expires string) (string, access.Token) {
	t.Helper()
	end, err := access.ParseExpiry(expires, start)
	testkit.Must(t, err)
	return access.NewToken(name, role, end)
}

func TestNewToken(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		secret, made := tokenUntil(t, "maria", access.Operator, "2027-01-31")
		if !regexp.MustCompile(`^rwt_[a-z2-7]{52}$`).MatchString(secret) || seen[secret] {
			t.Fatalf("%q is no new token of 256 bits", secret)
		}
		seen[secret] = true
		sum := sha256.Sum256([]byte(secret)) // as sha256sum says it
		if want := "maria operator 2027-01-31 " + hex.EncodeToString(sum[:]); made.Line() != want {
			t.Fatalf("line %q, want %q", made.Line(), want)
		}
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"maria", "maria.silva@hospital.example", "crm-2", "7", strings.Repeat("a", 64)} {
		if err := access.CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", " ", "joão", "a b", "#a", "-a", ".a", "a\n", "a\x00", "<b>", "local", "LOCAL", strings.Repeat("a", 65), "rwt_abc"} {
		if err := access.CheckName(name); err == nil || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "rwt_") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestParseExpiry(t *testing.T) {
	at := func(text string) time.Time {
		moment, err := time.Parse(time.RFC3339, text)
		testkit.Must(t, err)
		return moment
	}
	saoPaulo := time.FixedZone("BRT", -3*3600)
	for _, tt := range []struct {
		text string
		now  time.Time
		want time.Time
	}{
		{"90d", start, at("2027-02-01T00:00:00Z")},
		{"1d", start, at("2026-11-04T00:00:00Z")},
		{"1d", time.Date(2026, 11, 2, 22, 0, 0, 0, saoPaulo), at("2026-11-05T00:00:00Z")}, // it is the 3rd by UTC
		{"3650d", start, at("2036-10-31T00:00:00Z")},
		{"2027-01-31", start, at("2027-02-01T00:00:00Z")},
		{"2026-11-02", start, at("2026-11-03T00:00:00Z")}, // today
		{"2028-02-29", start, at("2028-03-01T00:00:00Z")},
		{"never", start, time.Time{}},
	} {
		if got, err := access.ParseExpiry(tt.text, tt.now); err != nil || !got.Equal(tt.want) {
			t.Errorf("%s: got %v, %v, want %v", tt.text, got, err, tt.want)
		}
	}
	for _, text := range []string{"", "90", "0d", "-1d", "3651d", "99999d", "90 d", "90D", "2026-11-01", "2027-02-29", "31.01.2027", "Never", "2027-1-31", "1y"} {
		_, err := access.ParseExpiry(text, start)
		if want := "expected days such as 90d (up to 3650d), a day to come such as 2027-11-02, or never"; err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
