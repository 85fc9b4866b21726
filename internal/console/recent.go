package console

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"retry-worker/internal/access"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// keep has the browser keep a value by itself for a year, or, for the session, until it is closed.
func (v *visit) keep(name, value string, session bool) {
	c := &http.Cookie{Name: name, Value: value, Path: "/", SameSite: http.SameSiteLaxMode, HttpOnly: true,
		Secure: access.OverTLS(v.r)}
	if !session {
		c.MaxAge = 365 * 24 * 3600
	}
	http.SetCookie(v.w, c)
}

const (
	recentCookie = "recent"
	// mostRecent reasons are offered; a longer one than maxRecentBytes is not worth a button.
	mostRecent     = 6
	maxRecentBytes = 160
)

// recent are somebody's last reasons, the newest first, as the journal has them: with nothing personal in them.
type recent struct {
	By             string   `json:"by"`
	Retry, Discard []string `json:",omitempty"`
}

// recentReasons of the reader; of somebody else's at the same browser nothing is shown.
func (v *visit) recentReasons() (r recent) {
	if c, err := v.r.Cookie(recentCookie); err == nil {
		raw, _ := base64.RawURLEncoding.DecodeString(c.Value)
		if json.Unmarshal(raw, &r) != nil || r.By != v.who.Name {
			r = recent{}
		}
	}
	r.By = v.who.Name
	return r
}

// remember puts the reason of a decision in front of the others.
func (v *visit) remember(n *journal.ReviewNote) {
	if len(n.Reason) > maxRecentBytes {
		return
	}
	r := v.recentReasons()
	of := &r.Retry
	if n.Discard {
		of = &r.Discard
	}
	*of = append([]string{n.Reason}, slices.DeleteFunc(*of, func(s string) bool { return s == n.Reason })...)
	*of = (*of)[:min(len(*of), mostRecent)]
	raw, _ := json.Marshal(r) // texts, which can be
	v.keep(recentCookie, base64.RawURLEncoding.EncodeToString(raw), true)
}

const teamCookie = "team"

// readTeam finds which team the reader works for: the one chosen now (?mine=, empty for none), or before, or the only
// one that he may decide for.
func (v *visit) readTeam() {
	if q := v.r.URL.Query(); q.Has("mine") {
		v.mine = decision.Team(plain(q.Get("mine"), maxQueryBytes))
		v.keep(teamCookie, base64.RawURLEncoding.EncodeToString([]byte(v.mine)), false)
		return
	}
	if c, err := v.r.Cookie(teamCookie); err == nil {
		raw, _ := base64.RawURLEncoding.DecodeString(c.Value) // what is none of ours is none
		v.mine = decision.Team(plain(string(raw), maxQueryBytes))
	} else if own := string(v.who.Teams); v.who.Teams != access.NoTeam && !strings.Contains(own, ",") {
		v.mine = decision.Team(own)
	}
}
