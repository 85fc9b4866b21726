package zeebe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"retry-worker/e2e/harness"
)

// askTimeout bounds one question to the broker, which a busy machine keeps waiting.
const askTimeout = 30 * time.Second

// client neither keeps connections, as the broker comes and goes, nor goes through a proxy.
var client = &http.Client{Timeout: askTimeout, Transport: &http.Transport{DisableKeepAlives: true}}

// ask calls an address of the broker's and returns what it answers with 200.
func ask(ctx context.Context, method, url, body string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the broker: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	if err != nil {
		return nil, fmt.Errorf("ask the broker: %s: %w", url, err)
	}
	return text, nil
}

// portTaken reports whether the process, which would wait for ever, says that somebody else has one of its ports.
func (b *Broker) portTaken(p *harness.Process) bool {
	return strings.Contains(p.LastLine(), "already in use")
}

// healthy reports whether the broker is ready, its gateway knows the partition's leader, and the gateway's port takes connections.
func (b *Broker) healthy(ctx context.Context) bool {
	if _, err := ask(ctx, http.MethodGet, b.ActuatorURL()+"/actuator/health/readiness", ""); err != nil {
		return false
	}
	text, err := ask(ctx, http.MethodGet, b.RESTAddress()+"/v1/topology", "")
	var topology struct {
		Brokers []struct {
			Partitions []struct{ Role, Health string }
		}
	}
	if err != nil || json.Unmarshal(text, &topology) != nil {
		return false
	}
	for _, broker := range topology.Brokers {
		for _, p := range broker.Partitions {
			if p.Role == "leader" && p.Health == "healthy" {
				conn, err := net.DialTimeout("tcp", b.GatewayAddress(), askTimeout)
				return err == nil && conn.Close() == nil
			}
		}
	}
	return false
}

// AddTime moves the broker's clock forward by d, in milliseconds, on top of earlier moves: timers that are due by then
// fire within about a second, and so do time-outs and back-offs of jobs. The clock of this machine, and so a worker's,
// stays: an absolute time that a worker computes lies in the broker's future only where it is further ahead than the
// broker's clock is.
func (b *Broker) AddTime(ctx context.Context, d time.Duration) error {
	b.change.Lock()
	defer b.change.Unlock()
	_, err := b.clock(ctx, http.MethodPost, "/add", fmt.Sprintf(`{"offsetMilli":%d}`, d.Milliseconds()))
	return err
}

// Time is the broker's clock.
func (b *Broker) Time(ctx context.Context) (time.Time, error) {
	return b.clock(ctx, http.MethodGet, "", "")
}

func (b *Broker) clock(ctx context.Context, method, path, body string) (time.Time, error) {
	text, err := ask(ctx, method, b.ActuatorURL()+"/actuator/clock"+path, body)
	var answer struct{ EpochMilli int64 }
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("the broker's clock: %w", err)
	}
	return time.UnixMilli(answer.EpochMilli), nil
}
