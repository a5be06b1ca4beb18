package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/kubesync/kubesync/sync/status"
)

const (
	// freshnessEvery is how often a reader's connection looks whether the repos have
	// become stale, which is no event of the board.
	freshnessEvery = time.Second
	// aliveEvery is how often something is sent, lest a proxy take the connection for dead.
	aliveEvery = 15 * time.Second
	// writeTime is how long one write to a reader may take before it is given up.
	writeTime = 10 * time.Second
)

// events sends what happens until the client leaves, or does not keep up.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Content-Type", "text/event-stream")
		return // HEAD
	}
	events, stop, ok := s.board.Subscribe()
	if !ok {
		w.Header().Set("Retry-After", "30")
		refuse(w, http.StatusServiceUnavailable, "too many clients read the events; try again later")
		return
	}
	defer stop()
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // proxies of nginx's kind would hold events back
	out := stream{to: w, control: http.NewResponseController(w)}
	if !out.send("retry: 2000\n\n") {
		return
	}
	freshness, alive := time.NewTicker(freshnessEvery), time.NewTicker(aliveEvery)
	defer freshness.Stop()
	defer alive.Stop()
	var stale *status.Stale
	for sent := true; sent; {
		select {
		case <-r.Context().Done():
			return
		case event, open := <-events:
			if !open {
				return // it did not keep up: it connects again, and reads everything again
			}
			sent = out.send(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", event.ID, event.Type, event.Data))
		case <-freshness.C:
			now := s.board.Freshness()
			if changed := !reflect.DeepEqual(now, stale); changed {
				stale = now
				sent = out.send(staleEvent(now))
			}
		case <-alive.C:
			sent = out.send(": alive\n\n")
		}
	}
}

// staleEvent says what makes the repos stale now.
func staleEvent(stale *status.Stale) string {
	body, err := json.Marshal(map[string]*status.Stale{"stale": stale})
	if err != nil {
		return ": " + err.Error() + "\n\n" // not possible for this type
	}
	return fmt.Sprintf("event: stale\ndata: %s\n\n", body)
}

// stream writes to a client at once.
type stream struct {
	to      http.ResponseWriter
	control *http.ResponseController
}

// send writes a text; false says that there is no writing to the client any more. The
// server's own limit on how long an answer may take is for answers that end.
func (s stream) send(text string) bool {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return false
	}
	if _, err := s.to.Write([]byte(text)); err != nil {
		return false
	}
	return s.control.Flush() == nil
}
