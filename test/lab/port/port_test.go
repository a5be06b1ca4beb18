package port_test

import (
	"net"
	"testing"

	"github.com/kubesync/kubesync/test/lab/port"
)

func TestPortsAreFreeAndDifferent(t *testing.T) {
	t.Parallel()
	taken := map[string]bool{}
	for range 20 {
		p, err := port.Take()
		if err != nil {
			t.Fatal(err)
		}
		defer p.Release()
		if taken[p.String()] {
			t.Errorf("port %s was given out twice", p)
		}
		taken[p.String()] = true
		listener, err := net.Listen("tcp", p.Address())
		if err != nil {
			t.Errorf("the port is not free: %v", err)
			continue
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestClosedReturns(t *testing.T) {
	t.Parallel()
	p, err := port.Take()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	port.Closed(p.Address())
}
