package harness

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
)

// Ports are sought below those that systems give to outgoing connections, so that an engine that is down for a moment finds its own
// free again.
const (
	firstPort = 15_000
	lastPort  = 32_000
	portTries = 1_000
	// startTries is how often a start is tried with other ports, when somebody took one meanwhile.
	startTries = 3
)

// FreePorts are n different ports on 127.0.0.1 that nothing listens on now, chosen at random so that test runs beside one another
// seldom meet.
func FreePorts(n int) ([]int, error) {
	var ports []int
	for range portTries {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort)
		if !slices.Contains(ports, port) && free(port) {
			ports = append(ports, port)
		}
	}
	return nil, errors.New("find free ports on 127.0.0.1: there are none")
}

func free(port int) bool {
	l, err := net.Listen("tcp", Address(port))
	return err == nil && l.Close() == nil
}

// Address is host:port of a port on 127.0.0.1.
func Address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// OnFreePorts calls start with n free ports, and again with others where somebody took one meanwhile: its error says so then.
func OnFreePorts(n int, start func(ports []int) error) error {
	for try := 1; ; try++ {
		ports, err := FreePorts(n)
		if err == nil {
			err = start(ports)
		}
		if err == nil || try == startTries || !strings.Contains(strings.ToLower(err.Error()), "already in use") {
			return err
		}
	}
}
