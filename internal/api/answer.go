package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
)

// answerTime bounds what a request may take; it is shorter than the server's own limit, so that there is an answer.
const answerTime = 20 * time.Second

// call is one request, with what it is answered from.
type call struct {
	*http.Request
	*Journal
	*API
	w      http.ResponseWriter
	status int // of the answer
}

// answer answers with what the operation makes of a request.
func (s *API) answer(o *Operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerTime)
		defer cancel()
		c := &call{Request: r.WithContext(ctx), Journal: s.journal.Load(), API: s, w: w, status: http.StatusOK}
		if c.Journal == nil && !o.closed {
			s.fail(w, http.StatusServiceUnavailable, journalUnavailable, "the journal is not open yet; /readyz says why")
			return
		}
		body, err := o.do(c)
		if err != nil {
			s.refuse(w, r, cmp.Or(o.unsure, cannotRead), err)
			return
		}
		s.write(w, c.status, body)
	}
}

const (
	// journalUnavailable is the code of what cannot be answered, or recorded, now.
	journalUnavailable = "journal_unavailable"
	// cannotRead is the message of what the journal could not be read for.
	cannotRead = "the journal cannot be read now; the worker's log says why"
)

// refusal is why a request is not carried out.
type refusal struct {
	status        int
	code, message string
}

func (r *refusal) Error() string { return r.code + ": " + r.message }

func invalid(code, format string, args ...any) error {
	return &refusal{http.StatusUnprocessableEntity, code, fmt.Sprintf(format, args...)}
}

// statuses of the refusals; the others are 422.
var statuses = map[deadletter.Code]int{
	deadletter.JobNotFound: http.StatusNotFound, deadletter.MaxRetriesExceeded: http.StatusConflict,
	deadletter.InvalidRetryState: http.StatusConflict, deadletter.PolicyNotFound: http.StatusConflict,
	deadletter.RunNotFound: http.StatusNotFound, deadletter.InvalidRunState: http.StatusConflict,
	deadletter.PlanOutdated: http.StatusConflict, deadletter.DeadlineMissed: http.StatusConflict,
	deadletter.CauseNotFound: http.StatusNotFound, deadletter.NothingTaught: http.StatusConflict,
	deadletter.RequestStands: http.StatusConflict,
}

// refusalOf returns why a request is refused; nil where err says that the journal could not be reached.
func refusalOf(err error) *refusal {
	if r, is := errors.AsType[*refusal](err); is {
		return r
	}
	if refused := deadletter.RefusalOf(err); refused != nil {
		status := cmp.Or(statuses[refused.Code], http.StatusUnprocessableEntity)
		return &refusal{status, string(refused.Code), refused.Message}
	}
	if wrong, is := errors.AsType[*gate.CommandError](err); is {
		return &refusal{http.StatusUnprocessableEntity, wrong.Code, wrong.Message}
	}
	code, message, _ := strings.Cut(err.Error(), ": ")
	switch {
	case errors.Is(err, gate.ErrUnknown):
		return &refusal{http.StatusNotFound, "destination_not_found", gate.ErrUnknown.Error()}
	case errors.Is(err, journal.ErrSubjectUnknown):
		return &refusal{http.StatusNotFound, code, message}
	case errors.Is(err, journal.ErrSubjectBusy):
		return &refusal{http.StatusConflict, code, message}
	}
	return nil
}

// refuse answers that a request is not carried out, or, in the words of unsure, may not be.
func (s *API) refuse(w http.ResponseWriter, r *http.Request, unsure string, err error) {
	if _, denied := errors.AsType[*access.Refusal](err); denied {
		s.gate.Deny(w, r, err)
		return
	}
	refused := refusalOf(err)
	if refused == nil {
		if r.Context().Err() == nil { // nobody waits for it any more otherwise
			s.log.Error("the API could not carry out a request", zap.String("request", r.Pattern), zap.Error(err))
		}
		refused = &refusal{http.StatusServiceUnavailable, journalUnavailable, unsure}
		if errors.Is(err, journal.ErrInvalid) {
			refused = &refusal{http.StatusUnprocessableEntity, "unrecordable",
				"the journal cannot hold this; the worker's log says why"}
		}
	}
	s.fail(w, refused.status, refused.code, refused.message)
}

// Failure is every error's body.
type Failure struct {
	Error   string `json:"error"`
	Message string `json:"message"`
}

func (s *API) fail(w http.ResponseWriter, status int, code, message string) {
	s.write(w, status, Failure{code, message})
}

func (s *API) write(w http.ResponseWriter, status int, body any) {
	answer, err := json.Marshal(body)
	if err != nil {
		s.log.Error("an answer of the API could not be written", zap.Error(err))
		status = http.StatusInternalServerError
		answer = []byte(`{"error":"internal_error","message":"the answer broke something; the worker's log says where"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	if _, err := w.Write(append(text.InertJSON(answer), '\n')); err != nil {
		s.log.Debug("an answer of the API was not taken", zap.Error(err))
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

// viewsOf are never null in JSON.
func viewsOf[T, V any](all []T, of func(*T) V) []V {
	views := make([]V, len(all))
	for i := range all {
		views[i] = of(&all[i])
	}
	return views
}
