package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/engine"
)

// ServeControl serves until Close the paths of a broker's actuator for its clock and counters, and the engine's events.
func (s *Server) ServeControl(l net.Listener) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /actuator/clock", s.tellClock)
	mux.HandleFunc("POST /actuator/clock/add", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ OffsetMilli int64 }
		if readControl(w, r, &in) {
			s.AddTime(time.Duration(in.OffsetMilli) * time.Millisecond)
			s.tellClock(w, r)
		}
	})
	mux.HandleFunc("POST /actuator/clock/pin", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ EpochMilli int64 }
		if readControl(w, r, &in) {
			s.PinTime(time.UnixMilli(in.EpochMilli))
			s.tellClock(w, r)
		}
	})
	mux.HandleFunc("DELETE /actuator/clock", func(w http.ResponseWriter, r *http.Request) {
		s.ResetTime()
		s.tellClock(w, r)
	})
	mux.HandleFunc("GET /actuator/prometheus", s.tellCounts)
	mux.HandleFunc("GET /events", s.tellEvents)
	s.serveHTTP(l, mux)
}

func readControl(w http.ResponseWriter, r *http.Request, in any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10))
	d.DisallowUnknownFields()
	if err := d.Decode(in); err != nil {
		http.Error(w, fmt.Sprintf("the body cannot be read: %v; expected {\"offsetMilli\":N} or {\"epochMilli\":N}", err), http.StatusBadRequest)
		return false
	}
	return true
}

func (s *Server) tellClock(w http.ResponseWriter, _ *http.Request) {
	now := s.Now()
	_ = writeJSON(w, http.StatusOK, "application/json", map[string]any{"epochMilli": now.UnixMilli(), "instant": now.UTC()})
}

func (s *Server) tellCounts(w http.ResponseWriter, r *http.Request) {
	var b strings.Builder
	err := s.inLoop(r.Context(), &request{look: func(c *engine.Core, _ []engine.Event) {
		counts := c.Counts()
		writeCounts(&b, "zeebe_job_events_total", counts.Jobs)
		writeCounts(&b, "zeebe_element_instance_events_total", counts.Elements)
		fmt.Fprintf(&b, "# TYPE zeebe_pending_incidents_total gauge\nzeebe_pending_incidents_total{partition=\"1\"} %d\n", c.Incidents())
	}})
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(b.String()))
}

var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// writeCounts writes a counter by type and action.
func writeCounts(b *strings.Builder, name string, counts map[[2]string]int64) {
	fmt.Fprintf(b, "# TYPE %s counter\n", name)
	order := func(a, b [2]string) int { return strings.Compare(a[0]+" "+a[1], b[0]+" "+b[1]) }
	for _, of := range slices.SortedFunc(maps.Keys(counts), order) {
		fmt.Fprintf(b, "%s{action=\"%s\",partition=\"1\",type=\"%s\"} %d\n", name, of[1], escaped.Replace(of[0]), counts[of])
	}
}

// tellEvents writes the events from a position on, one in a line. With follow=true it goes on with new ones.
func (s *Server) tellEvents(w http.ResponseWriter, r *http.Request) {
	position, follow := int64(-1), r.URL.Query().Get("follow") == "true"
	if text := r.URL.Query().Get("from"); text != "" {
		var err error
		if position, err = strconv.ParseInt(text, 10, 64); err != nil || position < 0 {
			http.Error(w, fmt.Sprintf("from is %.40q, expected a position, 1 or more", text), http.StatusBadRequest)
			return
		}
	}
	if position < 0 {
		position = s.recent.oldest()
	}
	position = max(1, position)
	s.followEvents(r.Context(), w, position, follow)
}

func (s *Server) followEvents(ctx context.Context, w http.ResponseWriter, position int64, follow bool) {
	e, flush := json.NewEncoder(w), http.NewResponseController(w)
	e.SetEscapeHTML(false)
	w.Header().Set("Content-Type", "application/x-ndjson")
	for first := true; ; first = false {
		events, gone, more := s.recent.from(position)
		if gone {
			if first {
				http.Error(w, fmt.Sprintf("the events from %d on are kept no more; the oldest is %d", position, s.recent.oldest()), http.StatusGone)
			}
			return // a reader that is too slow sees the end
		}
		for i := range events {
			_ = flush.SetWriteDeadline(time.Now().Add(sendTime))
			if e.Encode(&events[i]) != nil {
				return
			}
			position = events[i].Position + 1
		}
		if len(events) > 0 {
			continue
		}
		if !follow || more == nil || flush.Flush() != nil {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}
