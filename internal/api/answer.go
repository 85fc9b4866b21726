package api

import (
	"context"
	_ "embed" // codes.txt
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
)

// answerTime bounds a request. It is shorter than the server's own limit, so that an answer is still sent.
const answerTime = 20 * time.Second

// call is one request, with all that its operation needs.
type call struct {
	*http.Request
	*Journal
	*API
}

// answer returns the handler of an operation.
func (s *API) answer(o *Operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerTime)
		defer cancel()
		c := &call{r.WithContext(ctx), s.journal.Load(), s}
		if c.Journal == nil && !o.early {
			s.fail(w, journalUnavailable, "the journal is not open yet; /readyz says why")
			return
		}
		body, err := o.do(w, c)
		if err != nil {
			s.refuse(w, r, o, err)
			return
		}
		s.write(w, http.StatusOK, body)
	}
}

// journalUnavailable is the code for what cannot be answered or recorded now.
const journalUnavailable = "journal_unavailable"

// Failure is the body of an error.
type Failure struct {
	Error   string `json:"error" doc:"Why, as a code of a closed set."`
	Message string `json:"message"`
}

// Refused is the error of a request that is not carried out.
type Refused struct {
	Status int
	Failure
	// Body is the answer; if nil, Failure is.
	Body json.RawMessage
}

func (r *Refused) Error() string {
	if r.Failure.Error == "" {
		return r.Message
	}
	return r.Failure.Error + ": " + r.Message
}

//go:embed codes.txt
var codesText string

// statuses returns the HTTP status of each error code.
var statuses = sync.OnceValue(func() map[string]int {
	all := map[string]int{}
	for code, status := range pairsOf(codesText) {
		all[code], _ = strconv.Atoi(status)
	}
	return all
})

func refused(code, format string, args ...any) *Refused {
	return &Refused{Status: statuses()[code], Failure: Failure{code, fmt.Sprintf(format, args...)}}
}

// refusalOf returns err as a refusal; nil if it means that the journal could not be reached.
func refusalOf(err error) *Refused {
	if r, is := errors.AsType[*Refused](err); is {
		return r
	}
	if r := journal.RefusalOf(err); r != nil {
		return refused(string(r.Code), "%s", r.Message)
	}
	if errors.Is(err, journal.ErrInvalid) {
		return refused("unrecordable", "the journal cannot hold this; the worker's log says why")
	}
	return nil
}

// refuse answers a request that failed with err: it was refused, or the journal could not be reached.
func (s *API) refuse(w http.ResponseWriter, r *http.Request, o *Operation, err error) {
	if _, denied := errors.AsType[*access.Refusal](err); denied {
		s.gate.Deny(w, r, err)
		return
	}
	why := refusalOf(err)
	if (why == nil || errors.Is(err, journal.ErrInvalid)) && r.Context().Err() == nil { // the caller still waits
		s.Log.Error("the API could not carry out a request", zap.String("request", r.Pattern), zap.Error(err))
	}
	switch {
	case why == nil && o.Action == access.Read:
		why = refused(journalUnavailable,
			"the journal cannot be read now; the worker's log says why")
	case why == nil:
		why = refused(journalUnavailable,
			"it is not known whether this was recorded; look at it by GET, and send it again if it was not")
	case why.Body != nil:
		s.write(w, why.Status, why.Body)
		return
	}
	s.write(w, why.Status, why.Failure)
}

func (s *API) fail(w http.ResponseWriter, code, message string) {
	s.write(w, statuses()[code], Failure{code, message})
}

func (s *API) write(w http.ResponseWriter, status int, body any) {
	answer, err := json.Marshal(body)
	if err != nil {
		s.Log.Error("an answer of the API could not be written", zap.Error(err))
		status = http.StatusInternalServerError
		answer = []byte(`{"error":"internal_error","message":"the answer broke something; the worker's log says where"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	if _, err := w.Write(append(text.InertJSON(answer), '\n')); err != nil {
		s.Log.Debug("an answer of the API was not taken", zap.Error(err))
	}
}

// Page is one page of a list.
type Page[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next" doc:"The cursor of the next page; null on the last."`
}

func pageOf[T, V any](all []T, next string, of func(*T) V) Page[V] {
	return Page[V]{viewsOf(all, of), journal.OrNull(next)}
}

// viewsOf returns the view of each element. It is never nil, which would be null in JSON.
func viewsOf[T, V any](all []T, of func(*T) V) []V {
	views := make([]V, len(all))
	for i := range all {
		views[i] = of(&all[i])
	}
	return views
}
