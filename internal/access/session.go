package access

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"
)

const (
	// sessionLife is how long a session lasts, used or not: a working day with its overtime.
	sessionLife = 12 * time.Hour
	// skew is how far the clocks of replicas, which read one another's sessions, may differ.
	skew = time.Minute

	sessionIDBytes = 16
)

// session is one browser's log-in. It lives in its cookie alone: `payload.signature`, both base64; the payload is a
// random id (16 bytes), the second of the log-in (8 bytes) and the token's name. It is signed with a key made of the
// token's stored hash. So every replica can check it, a restart does not end it, and it ends when its token is taken
// out, replaced or expires. The role is the token's at each request.
type session struct {
	token   *Token
	payload string
	ends    time.Time
	// grant is what an OpenID provider said, sealed the cookie's value with it; nil for a session of a token.
	grant  *grant
	sealed string
}

var sessionText = base64.RawURLEncoding

// newSession returns a session that begins at now.
func newSession(t *Token, now time.Time) session {
	b := make([]byte, sessionIDBytes)
	_, _ = rand.Read(b) // never fails
	b = binary.BigEndian.AppendUint64(b, uint64(now.Unix()))
	b = append(b, t.Name...)
	return session{token: t, payload: sessionText.EncodeToString(b), ends: sessionEnd(t, now)}
}

// sessionEnd returns when a session ends: after sessionLife, or with its token if that comes first.
func sessionEnd(t *Token, began time.Time) time.Time {
	ends := time.Unix(began.Unix(), 0).Add(sessionLife)
	if !t.Expires.IsZero() && t.Expires.Before(ends) {
		return t.Expires
	}
	return ends
}

// value returns the cookie's value.
func (s *session) value() string {
	if s.grant != nil {
		return s.sealed
	}
	return s.payload + "." + s.token.sign("session", s.payload)
}

// formToken returns what the session's forms carry, so that no other page can fill them in.
func (s *session) formToken() string { return s.token.sign("form", s.payload) }

// sign returns the HMAC-SHA-256 of text for one purpose.
func (t *Token) sign(purpose, text string) string {
	return signature(derived(t.hash[:], nil, purpose), text)
}

// derived returns a key made of a secret, for one purpose.
func derived(secret, salt []byte, purpose string) []byte {
	key, err := hkdf.Key(sha256.New, secret, salt, "retry-worker "+purpose+" v1", sha256.Size)
	if err != nil {
		panic("access: " + err.Error()) // only for a key longer than HKDF makes
	}
	return key
}

func signature(key []byte, text string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return sessionText.EncodeToString(mac.Sum(nil))
}

// session returns the session of a cookie's value; nil if there is none, or it has ended at now.
func (t *Tokens) session(value string, now time.Time) *session {
	payload, signature, _ := strings.Cut(value, ".")
	b, err := sessionText.DecodeString(payload)
	if err != nil || len(b) <= sessionIDBytes+8 {
		return nil
	}
	began := time.Unix(int64(binary.BigEndian.Uint64(b[sessionIDBytes:])), 0)
	token := t.named(string(b[sessionIDBytes+8:]))
	if token == nil {
		return nil
	}
	// The text is signed, not the bytes it decodes to, so that there is only one way to write a session.
	if subtle.ConstantTimeCompare([]byte(signature), []byte(token.sign("session", payload))) != 1 {
		return nil
	}
	s := &session{token: token, payload: payload, ends: sessionEnd(token, began)}
	if began.After(now.Add(skew)) || !now.Before(s.ends) {
		return nil
	}
	return s
}

// OverTLS reports whether the browser speaks TLS, to us or to a proxy that says so. A client that lies gets stricter
// rules, and a cookie that its own browser refuses.
func OverTLS(r *http.Request) bool {
	first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",") // the proxy nearest to the browser
	return r.TLS != nil || strings.EqualFold(strings.TrimSpace(first), "https")
}

// cookie names a cookie. A browser sends it along where another site links here, such as a web mail, or redirects here,
// as the OpenID provider does, but not with another site's form or script.
type cookie string

const (
	sessionCookie cookie = "retry-worker-session"
	pendingCookie cookie = "retry-worker-login"
)

// nameIn returns the cookie's name in a request and its answer. Over TLS it has the prefix that makes a browser take it
// from this host only, and over TLS only.
func (c cookie) nameIn(r *http.Request) string {
	if OverTLS(r) {
		return "__Host-" + string(c)
	}
	return string(c)
}

// set gives the browser the cookie; an empty value deletes it.
func (c cookie) set(w http.ResponseWriter, r *http.Request, value string, life time.Duration) {
	seconds := max(1, int(life/time.Second))
	if value == "" {
		seconds = -1
	}
	http.SetCookie(w, &http.Cookie{
		Name: c.nameIn(r), Value: value, Path: "/", MaxAge: seconds,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: OverTLS(r),
	})
}

// value returns the value of the request's cookie; empty if there is none. Over TLS only the one with the prefix
// counts, which neither a neighbouring host nor plain HTTP can set. Several with one name count as none: somebody
// forged one.
func (c cookie) value(r *http.Request) string {
	if all := r.CookiesNamed(c.nameIn(r)); len(all) == 1 {
		return all[0].Value
	}
	return ""
}

// EndedSessions stores which sessions ended early, for every replica and across restarts. It knows a session by a hash,
// which lets nobody in. It is safe for concurrent use.
type EndedSessions interface {
	// EndSession stores that a session has ended, and removes those whose time is over at now.
	EndSession(ctx context.Context, id [sha256.Size]byte, until, now time.Time) error
	// SessionEnded reports whether EndSession was called for the session.
	SessionEnded(ctx context.Context, id [sha256.Size]byte) (bool, error)
}

// storeTime bounds one call of EndedSessions.
const storeTime = 3 * time.Second

func (s *session) id() [sha256.Size]byte { return sha256.Sum256([]byte(s.payload)) }

// hasEnded reports whether a session was ended early. Until the journal is open, none counts as ended, but nothing in
// the journal is served either.
func (g *Gate) hasEnded(ctx context.Context, s *session) (bool, error) {
	store := g.Ended()
	if store == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	return store.SessionEnded(ctx, s.id())
}

var errNotOpen = errors.New("the journal is not open")

// end makes every copy of the session's cookie invalid; s may be nil.
func (g *Gate) end(ctx context.Context, s *session) error {
	if s == nil {
		return nil
	}
	store := g.Ended()
	if store == nil {
		return errNotOpen
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	return store.EndSession(ctx, s.id(), s.ends.Add(skew), g.Now())
}

// unkept returns the refusal for an EndedSessions that failed with err; what says what that means for the person.
func (g *Gate) unkept(err error, what string) *Refusal {
	g.strangers().Error("the record of ended sessions cannot be reached; nobody is let in by a session until it can",
		zap.String("event", "sessions_unavailable"), zap.Error(err))
	return &Refusal{Status: http.StatusServiceUnavailable, Code: CodeSessionsUnavailable, RetryAfter: 5 * time.Second,
		Message: fmt.Sprintf("the journal cannot be reached now, %s; try again in a moment", what)}
}
