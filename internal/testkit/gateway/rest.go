package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strconv"
	"sync"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// rest serves the engine's REST API. It tells the faults where a request came from, and what token it shows.
type rest struct {
	http.Server
	running sync.WaitGroup
}

func newREST(g *Gateway) *rest {
	s, engine := &rest{}, g.engine.REST()
	if g.options.Version == LeaseVersion {
		engine = leases{g, engine}
	}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.running.Add(1)
		defer s.running.Done()
		ctx := peer.NewContext(r.Context(), &peer.Peer{Addr: conn{name: r.RemoteAddr}})
		ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("authorization", r.Header.Get("Authorization")))
		engine.ServeHTTP(w, r.WithContext(ctx))
	})
	return s
}

// Stop cuts all connections and returns when no call runs.
func (s *rest) Stop() {
	_ = s.Close()
	s.running.Wait()
}

// leases is an engine with leases: a job that was given away again takes no answer that shows an older one.
type leases struct {
	gateway *Gateway
	engine  http.Handler
}

var jobKey = regexp.MustCompile(`"jobKey":"(\d+)"`)

func (l leases) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in map[string]json.RawMessage
	_ = json.NewDecoder(r.Body).Decode(&in) // most have no body
	shown, wanted := string(in["leaseToken"]), in["withLease"] != nil
	if shown != "" && shown != l.of(path.Base(path.Dir(r.URL.Path))) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"title":"INVALID_STATE","detail":"the job is leased to another activation"}`)
		return
	}
	delete(in, "leaseToken")
	delete(in, "withLease")
	body, _ := json.Marshal(in) // cannot fail: it was read from JSON
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	l.engine.ServeHTTP(answer, r)
	text := answer.Body.String()
	if wanted {
		text = jobKey.ReplaceAllStringFunc(text, func(member string) string {
			return fmt.Sprintf(`%s,"leaseToken":%s`, member, l.of(jobKey.FindStringSubmatch(member)[1]))
		})
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = io.WriteString(w, text)
}

// of returns the lease of a job's newest activation, as JSON.
func (l leases) of(key string) string {
	n, _ := strconv.ParseInt(key, 10, 64) // 0 is nobody's
	record, _ := l.gateway.Job(n)
	return strconv.Quote("lease-" + strconv.Itoa(len(record.Activations)))
}
