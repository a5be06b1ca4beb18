package status

import (
	"encoding/json"
	"time"

	"github.com/kubesync/kubesync/sync"
)

const (
	// eventBuffer is how many events a reader may be behind before it is dropped.
	eventBuffer = 64
	// maxReaders is how many may read events at the same time.
	maxReaders = 100
)

// Event is something that happened, for those who want it at once.
type Event struct {
	ID   uint64          // counts from 1
	Type string          // "stage", "sync", "drift", "unlisted", "list" or "lease"
	Data json.RawMessage // an object; a list of names for "list"
}

type stageEvent struct {
	Repo     string     `json:"repo"`
	Stage    sync.Stage `json:"stage"`
	Since    time.Time  `json:"since"`
	Revision string     `json:"revision,omitempty"` // short
}

type syncEvent struct {
	Repo string `json:"repo"`
	Sync
}

type driftEvent struct {
	Repo   string `json:"repo"`
	Object string `json:"object"`
	Drift
}

// events hands what happens on to its readers. The board's mutex guards it.
type events struct {
	last    uint64
	readers map[chan Event]bool
}

// publish sends to all readers. One whose buffer is full is dropped: its channel is closed.
func (e *events) publish(kind string, data any) {
	e.last++
	if len(e.readers) == 0 {
		return
	}
	body, err := json.Marshal(data)
	if err != nil {
		return // these types always can be
	}
	event := Event{ID: e.last, Type: kind, Data: body}
	for reader := range e.readers {
		select {
		case reader <- event:
		default:
			e.drop(reader)
		}
	}
}

// drop ends a reader, unless that has happened.
func (e *events) drop(reader chan Event) {
	if e.readers[reader] {
		delete(e.readers, reader)
		close(reader)
	}
}

// Subscribe returns what happens from now on, until the function that comes with it is
// called. A channel that is closed before that belongs to a reader who did not keep up:
// it has to read everything again. False says that there are too many readers.
func (b *Board) Subscribe() (<-chan Event, func(), bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.events.readers) >= maxReaders {
		return nil, nil, false
	}
	if b.events.readers == nil {
		b.events.readers = map[chan Event]bool{}
	}
	reader := make(chan Event, eventBuffer)
	b.events.readers[reader] = true
	return reader, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.events.drop(reader)
	}, true
}

// Freshness returns what makes the repos stale at the moment, nil if nothing does.
func (b *Board) Freshness() *Stale { return b.stale() }
