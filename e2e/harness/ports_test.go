package harness

import (
	"net"
	"slices"
	"testing"
)

func TestPortsAreFreeAndDifferent(t *testing.T) {
	ports, err := FreePorts(50)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range ports {
		l, err := net.Listen("tcp", Address(p))
		if err != nil {
			t.Errorf("port %d is not free: %v", p, err)
			continue
		}
		if free(p) {
			t.Errorf("port %d counts as free while somebody listens", p)
		}
		l.Close()
	}
	if slices.Sort(ports); len(slices.Compact(ports)) != 50 {
		t.Error("a port was given twice")
	}
}
