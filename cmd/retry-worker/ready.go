package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"retry-worker/internal/config"
)

const readyTimeout = 3 * time.Second

func (c *cli) readyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ready",
		Short: "Ask the running worker whether it is ready (for health checks)",
		Long:  "Asks /readyz at RETRY_WORKER_OPS_ADDR. Exit 0 when it is ready, 1 when not.",
		RunE:  func(*cobra.Command, []string) error { return c.ready() },
	}
}

func (c *cli) ready() error {
	addr, err := config.OpsAddr()
	if err != nil {
		return &usageError{err}
	}
	// Straight to the worker, whatever proxy the environment names for the world outside.
	client := http.Client{Timeout: readyTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + reachable(addr) + "/readyz")
	if err != nil {
		return fmt.Errorf("no worker answers at %s: %w; start `retry-worker serve`, or set RETRY_WORKER_OPS_ADDR", addr, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", addr, err)
	}
	detail := strings.TrimSpace(string(answer))
	ready := response.StatusCode == http.StatusOK
	err = c.print(map[string]any{"ready": ready, "detail": detail}, func() {
		if ready {
			fmt.Fprintln(c.out, "ready")
		}
	})
	if err == nil && !ready {
		err = fmt.Errorf("not ready: %s", detail)
	}
	return err
}

// reachable turns an address to listen on into one to call: every interface means this machine.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return addr
}
