package repo

import (
	"sync"
	"testing"
	"time"

	"github.com/kubesync/kubesync/test/lab/gitbytes"
	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// tally is a meter that remembers.
type tally struct {
	mu             sync.Mutex
	statuses       map[int]int
	errors         int
	received, sent int
}

func (c *tally) Request(status int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.errors++
		return
	}
	if c.statuses == nil {
		c.statuses = map[int]int{}
	}
	c.statuses[status]++
}

func (c *tally) Received(bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received += bytes
}

func (c *tally) Sent(bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent += bytes
}

// take returns what was reported, and begins anew.
func (c *tally) take() (statuses map[int]int, errors, received, sent int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	statuses, errors, received, sent = c.statuses, c.errors, c.received, c.sent
	c.statuses, c.errors, c.received, c.sent = nil, 0, 0, 0
	return statuses, errors, received, sent
}

// A meter counts as many requests over http as the server has answered, with their
// statuses, and of all their bytes.
func TestMeterHTTP(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t)
	s := newSite(t, server.Dir(), "master")
	s.commit("one", file(gitbytes.Noise(20_000))) // compresses to a little more than half
	meter := new(tally)
	r := open(t, server.URL("site"), "", func(o *Options) { o.Meter = meter })
	server.Log.Reset()
	content(t, r, resolve(t, r), "dir/file")
	statuses, errors, received, sent := meter.take()
	for len(server.Log.UnderWay()) > 0 { // answered, and not in its log yet
		time.Sleep(time.Millisecond)
	}
	if asked := len(server.Log.Requests()); statuses[200] != asked || len(statuses) != 1 || errors != 0 {
		t.Errorf("reported %v and %d errors; the server was asked %d times", statuses, errors, asked)
	}
	if received < 10_000 || received > 30_000 || sent < 100 || sent > 10_000 {
		t.Errorf("%d bytes were received and %d sent", received, sent)
	}

	server.Behave(gitserver.Failing(503))
	resolveFails(t, r, "503")
	if statuses, _, _, _ := meter.take(); statuses[503] == 0 || statuses[200] != 0 {
		t.Errorf("of a server that fails it reports %v", statuses)
	}
	server.Down()
	resolveFails(t, r)
	if statuses, errors, _, _ := meter.take(); errors == 0 || len(statuses) != 0 {
		t.Errorf("of a server that is down it reports %v and %d errors", statuses, errors)
	}
}

// Over ssh there is no status.
func TestMeterSSH(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := gitserver.StartSSH(t, dir)
	s := newSite(t, dir, "master")
	s.commit("one", file(gitbytes.Noise(20_000)))
	meter := new(tally)
	r := open(t, server.URL("site"), "", func(o *Options) {
		o.SSHKeyFile, o.SSHKnownHostsFile, o.Meter = server.KeyFile, server.KnownHostsFile, meter
	})
	content(t, r, resolve(t, r), "dir/file")
	statuses, errors, received, sent := meter.take()
	if statuses[0] < 2 || len(statuses) != 1 || errors != 0 || received < 10_000 || sent < 100 {
		t.Errorf("reported %v, %d errors, %d bytes received and %d sent", statuses, errors, received, sent)
	}
	server.Down()
	resolveFails(t, r)
	if _, errors, _, _ := meter.take(); errors == 0 {
		t.Error("a server that is down is no error")
	}
}
