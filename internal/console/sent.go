package console

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// sent is a form that was refused, and why. The answer to a POST is a redirect, so that Back and reload do not repeat
// it; a cookie keeps the form for the page that it leads to. The zero value means that no form was refused.
type sent struct {
	// Page is a random id that the address of the page with the form has, too.
	Page string `json:"p"`
	// Verb is the last part of the form's address.
	Verb string     `json:"v"`
	Form url.Values `json:"f"`
	// Wrong says what is wrong. Field is the field that it is about; it may be empty. Status is the page's.
	Wrong  string `json:"w,omitempty"`
	Field  string `json:"o,omitempty"`
	Status int    `json:"s,omitempty"`
}

// Value returns what was sent in a field of that verb's form; empty if another form was sent.
func (s *sent) Value(verb, name string) string {
	if s.Verb != verb {
		return ""
	}
	return s.Form.Get(name)
}

// Is reports whether one of these fields of that verb's form is wrong.
func (s *sent) Is(verb string, fields ...string) bool {
	return s.Verb == verb && slices.Contains(fields, s.Field)
}

const (
	sentCookie = "sent"
	// sentSeconds is how long the browser keeps it.
	sentSeconds = 600
	// maxSentText bounds the bytes of a field, so that all fit into a cookie: browsers keep 4 KB.
	maxSentText = 2100
	// againField is the field of an address that holds sent.Page.
	againField = "again"
)

// sentFields lists the fields that a form shows again: what people write and choose.
var sentFields = []string{"reason", "how", "when", "deadline", "late", "protocolNumber", "text", "assignee", "followUp",
	"classification", "team", "until", "perMinute", "why", "everything", "total", "ready"}

// verb returns the last part of the address, which says what a form is to do.
func (v *visit) verb() string { return path.Base(v.r.URL.Path) }

// again leads to the page at an address, which shows the form as it was sent. Values longer than any field takes are
// cut.
func (v *visit) again(to string, s sent) *page {
	s.Page, s.Verb, s.Form = rand.Text(), v.verb(), url.Values{}
	if s.Wrong != "" {
		s.Status = cmp.Or(s.Status, http.StatusUnprocessableEntity)
	}
	for _, name := range sentFields {
		if v.r.PostForm.Has(name) {
			value := v.r.PostForm.Get(name)
			s.Form.Set(name, strings.ToValidUTF8(value[:min(len(value), maxSentText)], ""))
		}
	}
	text, _ := json.Marshal(s) // cannot fail
	v.keep(sentCookie, string(text), sentSeconds)
	address, _ := url.Parse(to) // the pages' own
	q := address.Query()
	q.Set(againField, s.Page)
	address.RawQuery = q.Encode()
	return &page{redirect: address.String()}
}

// refused leads back to the page of a refused form, with the text of prefix and the refusal's code. If err is no
// refusal, the change may have been made: the problem with the key mayBe says so.
func (v *visit) refused(err error, to, prefix, mayBe string) (*page, error) {
	r := journal.RefusalOf(err)
	switch {
	case r == nil:
		return nil, unsure(mayBe, err)
	case unknown[r.Code] != "":
		return nil, err
	}
	code := string(r.Code)
	s := sent{Wrong: v.Or(prefix+code, v.Or("form.wrong."+code, r.Message)),
		Field: cmp.Or(fieldsOfDecisions[r.Code], deadletter.FieldOf(r.Code))}
	if r.Code == journal.InvalidRunState {
		s.Status = http.StatusConflict
	}
	return v.again(to, s), nil
}

// sentOf returns the form that a request's page shows again; the zero value if there is none.
func sentOf(r *http.Request) *sent {
	var s sent
	page := r.URL.Query().Get(againField)
	if page == "" || json.Unmarshal([]byte(kept(r, sentCookie)), &s) != nil || s.Page != page {
		return &sent{}
	}
	return &s
}

const aYear = 365 * 24 * 3600 // seconds

// keep makes the browser keep a value for so many seconds, or until it is closed if they are 0.
func (v *visit) keep(name, value string, seconds int) {
	http.SetCookie(v.w, &http.Cookie{Name: name, Value: base64.RawURLEncoding.EncodeToString([]byte(value)), Path: "/",
		SameSite: http.SameSiteLaxMode, HttpOnly: true, Secure: access.OverTLS(v.r), MaxAge: seconds})
}

// kept returns a value that keep made the browser keep; empty if there is none.
func kept(r *http.Request, name string) string {
	c, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	value, _ := base64.RawURLEncoding.DecodeString(c.Value)
	return string(value)
}
