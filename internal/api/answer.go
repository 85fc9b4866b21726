package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"unicode"
	"unicode/utf8"

	"go.uber.org/zap"
)

// journalUnavailable is the code of what cannot be answered, or recorded, now.
const journalUnavailable = "journal_unavailable"

// cannotRead is the message of what the journal could not be read for.
const cannotRead = "the journal cannot be read now; the worker's log says why"

// failure is every error's body.
type failure struct {
	Error   string `json:"error"`
	Message string `json:"message"`
}

func (s *API) fail(w http.ResponseWriter, status int, code, message string) {
	s.write(w, status, failure{code, message})
}

// unreadable answers that the journal could not be read; why is for the log.
func (s *API) unreadable(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() == nil { // nobody waits for it any more otherwise
		s.log.Error("the API could not read the journal", zap.Error(err))
	}
	s.fail(w, http.StatusServiceUnavailable, journalUnavailable, cannotRead)
}

func (s *API) write(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		s.log.Error("an answer of the API could not be written", zap.Error(err))
		status, text = http.StatusInternalServerError, []byte(`{"error":"internal_error","message":"the answer broke something; the worker's log says where"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	if _, err := w.Write(append(Inert(text), '\n')); err != nil {
		s.log.Debug("an answer of the API was not taken", zap.Error(err))
	}
}

// Inert is a JSON text that says the same with nothing in it that a terminal, an editor or a browser acts on: <, > and &,
// DEL, the C1 controls, what turns the direction of writing, and what has no width are written as \u escapes. (The
// controls below U+0020 are so already in every JSON text.) What is not UTF-8 becomes U+FFFD. It must be valid JSON: only
// within its strings can such a character stand.
func Inert(text []byte) []byte {
	if !bytes.ContainsFunc(text, active) && utf8.Valid(text) {
		return text
	}
	b := make([]byte, 0, len(text)+64)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if active(r) {
			b = fmt.Appendf(b, `\u%04x`, r)
		} else {
			b = utf8.AppendRune(b, r)
		}
		text = text[size:]
	}
	return b
}

// active tells whether something else than showing it may come of a character.
func active(r rune) bool {
	return r == '<' || r == '>' || r == '&' || r >= 0x7f && r <= 0x9f || hidden(r)
}

// hidden tells whether a character has no shape of its own: soft hyphen, zero-width and bidi marks, line and paragraph
// separators, bidi embeddings and isolates, invisible operators, annotation marks.
func hidden(r rune) bool {
	switch {
	case r == 0xad, r == 0x61c, r == 0x180e, r == 0xfeff:
		return true
	default:
		return r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2060 && r <= 0x206f || r >= 0xfff9 && r <= 0xfffb
	}
}

// visible tells whether something of a character can be seen.
func visible(r rune) bool {
	return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !hidden(r) && r != utf8.RuneError
}

// refusal is why a request is not carried out.
type refusal struct {
	status        int
	code, message string
}

func invalid(code, format string, args ...any) *refusal {
	return &refusal{http.StatusUnprocessableEntity, code, fmt.Sprintf(format, args...)}
}

func (s *API) refuse(w http.ResponseWriter, r *refusal) { s.fail(w, r.status, r.code, r.message) }

// firstOf is the first refusal there is; nil if there is none.
func firstOf(all ...*refusal) *refusal {
	for _, r := range all {
		if r != nil {
			return r
		}
	}
	return nil
}
