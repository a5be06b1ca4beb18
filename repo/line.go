package repo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubesync/kubesync/repo/limits"
)

// idleTime is how long a connection stays open for the next request, which for a
// new revision follows at once. Nobody has to close anything.
const idleTime = 10 * time.Second

// line is the way to a server. One at a time uses it: the Repo while it polls, or
// one of the files it handed out, which outlive the poll.
type line struct {
	turn chan struct{} // has room for the one whose turn it is, who may use the rest

	server *server // of the last poll, with its credentials; nil before the first
	habits habits
	hangUp *time.Timer // closes the connection; nil while there is none
	// silence is what ends a connection on which nothing happens.
	silence silence
	// busyUntil is when a server that said so may be asked again.
	busyUntil time.Time
}

// maxBusy bounds how long a server is left alone because it says so.
const maxBusy = 15 * time.Minute

func newLine(bounds limits.Limits) line {
	return line{turn: make(chan struct{}, 1), silence: silence{limits: bounds}}
}

// take waits for one's turn, and returns how to end it. While a server wants to be
// left alone, nobody has a turn.
func (l *line) take(ctx context.Context) (done func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if wait := time.Until(l.busyUntil); wait > 0 {
		<-l.turn
		return nil, fmt.Errorf("the server is busy, and wants to be left alone for another %s", wait.Round(time.Second))
	}
	if l.hangUp != nil {
		l.hangUp.Stop()
	}
	l.silence.fallen.Store(false)
	return l.done, nil
}

// heed notes from an error how long the server wants to be left alone.
func (l *line) heed(err error) {
	var status *statusError
	if errors.As(err, &status) && status.busy() {
		l.busyUntil = time.Now().Add(min(status.retryAfter, maxBusy))
	}
}

func (l *line) done() {
	if l.server != nil {
		l.server.rest()
	}
	l.hangUp = time.AfterFunc(idleTime, l.idle)
	<-l.turn
}

// idle closes the connection, unless somebody uses it just now.
func (l *line) idle() {
	select {
	case l.turn <- struct{}{}:
		if l.server != nil {
			l.server.close()
		}
		<-l.turn
	default:
	}
}

// use makes a server the one to speak to, as it is known from now on.
func (l *line) use(s *server) {
	if l.server != nil {
		l.server.close()
	}
	l.server = s
}
