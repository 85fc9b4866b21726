package console

import (
	"bytes"
	"compress/flate"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	"retry-worker/internal/access"
)

// sent is a form that was refused, and why. Each post is answered by a redirect, so that Back and reload repeat none;
// the browser keeps the form for the page that it leads to. Its zero value is nothing.
type sent struct {
	// Page that has the form again, by a number that its address has, too.
	Page string `json:"p"`
	// Verb that was asked for: the last part of the form's address.
	Verb string     `json:"v"`
	Form url.Values `json:"f"`
	// Wrong says what is wrong with Field, which is empty where it is none of them; Status is the page's.
	Wrong  string `json:"w,omitempty"`
	Field  string `json:"o,omitempty"`
	Status int    `json:"s,omitempty"`
}

const (
	sentCookie = "sent"
	// sentSeconds that the browser keeps it.
	sentSeconds = 600
	// maxSentText bytes of one field, so that all fit into a cookie, of which browsers keep 4 KB; maxSentBytes of all.
	maxSentText  = 2100
	maxSentBytes = 16 << 10
	// againField of an address names the form.
	againField = "again"
)

// again leads to the page at an address, which shows the form as it was sent, with the named fields alone. What is longer
// than any field takes is cut.
func (v *visit) again(to string, s sent, fields ...string) *page {
	s.Page, s.Verb, s.Form = rand.Text(), path.Base(v.r.URL.Path), url.Values{}
	for _, name := range fields {
		if v.r.PostForm.Has(name) {
			s.Form.Set(name, plainLines(v.r.PostForm.Get(name), maxSentText))
		}
	}
	text, _ := json.Marshal(s) // texts, which can be
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestCompression) // a level that there is
	_, _ = w.Write(text)
	_ = w.Close()
	v.keep(sentCookie, base64.RawURLEncoding.EncodeToString(packed.Bytes()), sentSeconds)
	to, fragment, _ := strings.Cut(to, "#")
	mark := "?"
	if strings.Contains(to, "?") {
		mark = "&"
	}
	return &page{redirect: to + mark + againField + "=" + s.Page + "#" + fragment}
}

// sent is the form that the page has again; nothing where it has none.
func (v *visit) sent() (s sent) {
	c, err := v.r.Cookie(sentCookie)
	if err != nil || !v.r.URL.Query().Has(againField) {
		return sent{}
	}
	packed, _ := base64.RawURLEncoding.DecodeString(c.Value) // what is none of ours cannot be read
	text, _ := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxSentBytes))
	if json.Unmarshal(text, &s) != nil || s.Page != v.r.URL.Query().Get(againField) {
		return sent{}
	}
	return s
}

// plainLines cuts a text to so many bytes.
func plainLines(s string, most int) string { return strings.ToValidUTF8(s[:min(len(s), most)], "") }

// aYear in seconds.
const aYear = 365 * 24 * 3600

// keep has the browser keep a value for so many seconds; until it is closed where they are 0.
func (v *visit) keep(name, value string, seconds int) {
	http.SetCookie(v.w, &http.Cookie{Name: name, Value: value, Path: "/", SameSite: http.SameSiteLaxMode, HttpOnly: true,
		Secure: access.OverTLS(v.r), MaxAge: seconds})
}
