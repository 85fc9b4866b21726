package harness

import "retry-worker/internal/testkit"

// Ports returns n ports of 127.0.0.1 that are reserved as long as this process lives: a server that it starts may
// listen there, end and come back, and nobody else can meanwhile.
func Ports(n int) (ports []int, err error) {
	for range n {
		port, _, err := testkit.ReservePort()
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}
