package access_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"retry-worker/internal/testkit"
)

// hospital is an OpenID provider with one person, maria, whose claims the test sets.
type hospital struct {
	*storage.Storage
	*httptest.Server
	t      *testing.T
	claims map[string]any
	// away answers everything with 500; forged is the next ID token in place of the provider's own; moved is where tokens
	// are given out instead.
	away          bool
	forged, moved string
	// silent: a request is told to asked, and answered once silent is closed.
	silent, asked chan struct{}
}

func newHospital(t *testing.T, claims map[string]any) *hospital {
	t.Helper()
	h := &hospital{t: t, claims: claims}
	var provider http.Handler
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.silent != nil {
			h.asked <- struct{}{}
			<-h.silent
		}
		switch {
		case h.away:
			http.Error(w, "away", http.StatusInternalServerError)
		case h.moved != "" && strings.HasSuffix(r.URL.Path, "/token"):
			http.Redirect(w, r, h.moved, http.StatusTemporaryRedirect)
		case h.forged != "" && strings.HasSuffix(r.URL.Path, "/token"):
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "x", "token_type": "Bearer", "expires_in": 300, "id_token": h.forged})
		default:
			provider.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(h.Close)
	h.Storage = storage.NewStorageWithClients(h, map[string]*storage.Client{
		"retry-worker": storage.WebClient("retry-worker", clientSecret, console+"/login/callback"),
	})
	provider = exampleop.SetupServer(h.URL, h, slog.New(slog.DiscardHandler), false)
	return h
}

func (h *hospital) GetUserByID(string) *storage.User {
	return &storage.User{ID: "f:1:maria", Username: "maria", Password: "senha"}
}
func (h *hospital) GetUserByUsername(string) *storage.User { return h.GetUserByID("") }
func (h *hospital) ExampleClientID() string                { return "service" }

func (h *hospital) SetUserinfoFromRequest(ctx context.Context, info *oidc.UserInfo, token op.IDTokenRequest, scopes []string) error {
	for name, value := range h.claims {
		info.AppendClaims(name, value)
	}
	return h.Storage.SetUserinfoFromRequest(ctx, info, token, scopes)
}

// leaves takes the person's tokens away, as a provider does whose person was let go.
func (h *hospital) leaves() {
	h.t.Helper()
	testkit.Must(h.t, h.TerminateSession(h.t.Context(), "f:1:maria", "retry-worker"))
}

// signed is a token of those claims beside or in place of good ones; nil takes one out.
func (h *hospital) signed(now time.Time, changes map[string]any) string {
	h.t.Helper()
	own, err := h.SigningKey(h.t.Context())
	testkit.Must(h.t, err)
	return sign(h.t, jose.SigningKey{Algorithm: own.SignatureAlgorithm(), Key: jose.JSONWebKey{Key: own.Key(), KeyID: own.ID()}}, h.good(now, changes))
}

func (h *hospital) good(now time.Time, changes map[string]any) map[string]any {
	claims := map[string]any{"iss": h.URL, "aud": "retry-worker", "sub": "f:1:maria", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"preferred_username": "maria", "roles": []string{"operator"}}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return claims
}

func sign(t *testing.T, key jose.SigningKey, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(key, nil)
	testkit.Must(t, err)
	text, err := json.Marshal(claims)
	testkit.Must(t, err)
	signed, err := signer.Sign(text)
	testkit.Must(t, err)
	token, err := signed.CompactSerialize()
	testkit.Must(t, err)
	return token
}
