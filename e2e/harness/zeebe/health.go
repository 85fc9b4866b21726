package zeebe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"retry-worker/e2e/harness"
)

const (
	healthEvery = 50 * time.Millisecond
	// askTimeout bounds one question to the broker.
	askTimeout = 5 * time.Second
	// portTaken is in the line that says so.
	portTaken = "already in use"
)

// waitHealthy polls until the broker works, its process ends or ctx does.
func (b *Broker) waitHealthy(ctx context.Context, p *harness.Process) error {
	ticker := time.NewTicker(healthEvery)
	defer ticker.Stop()
	for {
		select {
		case <-p.Done():
			return fmt.Errorf("its process ended (%w)", ended(p))
		case <-ctx.Done():
			return fmt.Errorf("it was not healthy in time (%w)", ctx.Err())
		case <-ticker.C:
		}
		if b.healthy(ctx) {
			return nil
		}
		if strings.Contains(p.LastLine(), portTaken) { // it would wait for ever
			return errors.New("one of its ports is taken")
		}
	}
}

func ended(p *harness.Process) error {
	if err := p.Err(); err != nil {
		return err
	}
	return errors.New("exit status 0")
}

// healthy tells whether the broker is ready, its gateway knows the partition's leader, and the
// gateway's port takes connections.
func (b *Broker) healthy(ctx context.Context) bool {
	if status, err := ask(ctx, b.ActuatorURL()+"/actuator/health/readiness", nil); err != nil || status != http.StatusOK {
		return false
	}
	var topology struct {
		Brokers []struct {
			Partitions []struct{ Role, Health string }
		}
	}
	if status, err := ask(ctx, "http://"+harness.Address(b.ports.rest)+"/v1/topology", &topology); err != nil || status != http.StatusOK {
		return false
	}
	for _, broker := range topology.Brokers {
		for _, p := range broker.Partitions {
			if p.Role == "leader" && p.Health == "healthy" {
				return b.gatewayAccepts(ctx)
			}
		}
	}
	return false
}

func (b *Broker) gatewayAccepts(ctx context.Context) bool {
	dialer := net.Dialer{Timeout: askTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", b.GatewayAddress())
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// client neither keeps connections, as the broker comes and goes, nor goes through a proxy.
var client = &http.Client{Timeout: askTimeout, Transport: &http.Transport{DisableKeepAlives: true}}

// ask gets an address; a 200's answer is decoded into answer, unless that is nil.
func ask(ctx context.Context, url string, answer any) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if answer != nil && response.StatusCode == http.StatusOK {
		err = json.NewDecoder(response.Body).Decode(answer)
	}
	return response.StatusCode, err
}
