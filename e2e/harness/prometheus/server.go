// Package prometheus runs a real Prometheus and promtool, for tests.
package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
	"retry-worker/internal/testkit"
)

const (
	startTime = time.Minute
	stopTime  = 20 * time.Second
	askTime   = 20 * time.Second
)

// Program is a Prometheus with its promtool, of Debian 12's version or newer.
var Program = &fetch.Program{
	Name: "Prometheus", Oldest: "2.42", Places: []string{"prometheus"}, Args: []string{"--version"},
	Version: regexp.MustCompile(`prometheus, version (\S+)`), Packages: []string{"prometheus"}, Unless: []string{fetch.Services},
}

// Server is a running Prometheus that listens on 127.0.0.1 only. Safe for concurrent use.
type Server struct {
	URL     string
	process *harness.Process
}

// Start starts a Prometheus with a configuration (prometheus.yml) and its data in dir, and returns when it answers.
// On Linux none outlives this process. The error is one line.
func Start(ctx context.Context, i fetch.Install, dir, configuration string) (*Server, error) {
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	ports, err := harness.Ports(1)
	if err != nil {
		return nil, err
	}
	address := testkit.Loopback(ports[0])
	s := &Server{URL: "http://" + address}
	s.process, err = harness.StartServer(ctx, startTime, harness.Command{Path: i.Path, Dir: dir, Args: []string{
		"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address,
	}}, s.ready)
	if err != nil {
		return nil, fmt.Errorf("start Prometheus: %w", err)
	}
	return s, nil
}

func (s *Server) ready(*harness.Process) bool {
	answer, err := http.Get(s.URL + "/-/ready")
	return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}

// Stop ends the server in order.
func (s *Server) Stop(ctx context.Context) error { return s.process.Stop(ctx, stopTime) }

// Sample is a value at an instant: in the API's JSON a pair of seconds and text.
type Sample struct {
	At    time.Time
	Value float64
}

// UnmarshalJSON reads [1700000000.123, "0.5"].
func (s *Sample) UnmarshalJSON(text []byte) error {
	var seconds float64
	var value string
	if err := json.Unmarshal(text, &[]any{&seconds, &value}); err != nil {
		return err
	}
	s.At = time.UnixMilli(int64(seconds * 1000))
	var err error
	s.Value, err = strconv.ParseFloat(value, 64)
	return err
}

// Series is one series of a query's answer: Value by Query, Values by QueryRange.
type Series struct {
	Metric map[string]string
	Value  Sample
	Values []Sample
}

// Query evaluates an expression at an instant.
func (s *Server) Query(ctx context.Context, expr string, at time.Time) ([]Series, error) {
	return s.series(ctx, "/api/v1/query", url.Values{"query": {expr}, "time": {seconds(at)}})
}

// QueryRange evaluates an expression at every step from one instant to another.
func (s *Server) QueryRange(ctx context.Context, expr string, from, to time.Time, step time.Duration) ([]Series, error) {
	return s.series(ctx, "/api/v1/query_range", url.Values{
		"query": {expr}, "start": {seconds(from)}, "end": {seconds(to)}, "step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	})
}

// LabelValues returns a label's values in the series that match a selector.
func (s *Server) LabelValues(ctx context.Context, label, selector string) (values []string, err error) {
	return values, s.Ask(ctx, "/api/v1/label/"+label+"/values", url.Values{"match[]": {selector}}, &values)
}

func (s *Server) series(ctx context.Context, path string, q url.Values) ([]Series, error) {
	var data struct{ Result []Series }
	err := s.Ask(ctx, path, q, &data)
	return data.Result, err
}

// Ask decodes the data of an answer of the HTTP API.
func (s *Server) Ask(ctx context.Context, path string, q url.Values, data any) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path+"?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask Prometheus: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("ask Prometheus: %w", err)
	}
	said := struct {
		Error string
		Data  any
	}{Data: data}
	if err := json.Unmarshal(body, &said); err != nil {
		return fmt.Errorf("Prometheus answers %s: %w", answer.Status, err)
	}
	if said.Error != "" {
		return fmt.Errorf("Prometheus refuses %q: %s", q.Encode(), said.Error)
	}
	return nil
}

func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }
