// Package prometheus runs a real Prometheus and promtool, for tests.
package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/prometheus/common/model"

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

// Query evaluates an expression at an instant.
func (s *Server) Query(ctx context.Context, expr string, at time.Time) (model.Vector, error) {
	var data struct{ Result model.Vector }
	err := s.Ask(ctx, "query", url.Values{"query": {expr}, "time": {at.Format(time.RFC3339Nano)}}, &data)
	return data.Result, err
}

// Ask decodes the data of an answer of the HTTP API.
func (s *Server) Ask(ctx context.Context, path string, q url.Values, data any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/v1/"+path+"?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Timeout: askTime}).Do(request)
	if err != nil {
		return fmt.Errorf("ask Prometheus: %w", err)
	}
	defer answer.Body.Close()
	said := struct {
		Error string
		Data  any
	}{Data: data}
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil || said.Error != "" {
		return fmt.Errorf("ask Prometheus for %q: %s, %s (%w)", q.Encode(), answer.Status, said.Error, err)
	}
	return nil
}
