package sender

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/kubesync/kubesync/internal/backoff"
)

// longestWait bounds the time between two tries, whatever the server asks for.
const longestWait = 5 * time.Minute

// Options are what a Sender works with.
type Options[T any] struct {
	Send func(context.Context, T) error // sends an item once; a *Later is tried again
	// Failed gets every failure, with the number of tries so far. An item that is dropped is not
	// tried again.
	Failed func(item T, err error, tries int, dropped bool)
	Newest bool          // only the newest item counts: it replaces the one that waits or is retried
	Size   int           // how many items wait; one with Newest
	First  time.Duration // the wait after a first failure; it doubles, up to five minutes
	Tries  int           // of an item; 0 for no bound
	// Sleep waits, false if the context has ended; nil for real time.
	Sleep func(context.Context, time.Duration) bool
}

// Sender sends items to one server, one after the other.
type Sender[T any] struct {
	options Options[T]
	items   chan T
}

// New returns a sender, which sends while Run runs.
func New[T any](options Options[T]) *Sender[T] {
	if options.Newest {
		options.Size = 1
	}
	if options.Sleep == nil {
		options.Sleep = func(ctx context.Context, d time.Duration) bool { return backoff.Sleep(ctx, d, nil) }
	}
	return &Sender[T]{options: options, items: make(chan T, options.Size)}
}

// Queue takes an item; false if too many wait already, which does not happen with Newest. It
// must not be called concurrently.
func (s *Sender[T]) Queue(item T) bool {
	if s.options.Newest {
		select {
		case <-s.items:
		default:
		}
	}
	select {
	case s.items <- item:
		return true
	default:
		return false
	}
}

// Run sends until ctx ends. What is then still to be sent is lost.
func (s *Sender[T]) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case item := <-s.items:
			s.deliver(ctx, item)
		}
	}
}

// deliver sends an item, again and again where that may help.
func (s *Sender[T]) deliver(ctx context.Context, item T) {
	for try := 1; ; try++ {
		err := s.options.Send(ctx, item)
		if err == nil || ctx.Err() != nil {
			return
		}
		var later *Later
		again := errors.As(err, &later)
		if again && try == s.options.Tries {
			again, err = false, fmt.Errorf("%w (tried %d times)", err, try)
		}
		s.options.Failed(item, err, try, !again)
		if !again || !s.options.Sleep(ctx, max(backoff.Wait(try, s.options.First, longestWait), later.After)) {
			return
		}
		if s.options.Newest {
			select {
			case item = <-s.items:
			default:
			}
		}
	}
}

// Later is a failure that another try may mend.
type Later struct {
	Err   error
	After time.Duration // that the server asks for, five minutes at most; 0 if it does not
}

// Error is the failure's.
func (e *Later) Error() string { return e.Err.Error() }

// Unwrap returns the failure.
func (e *Later) Unwrap() error { return e.Err }

// Judge returns nil for an answer of success, else err: as a *Later where the server is busy or
// broken (408, 429, 5xx).
func Judge(answer *http.Response, err error) error {
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		return &Later{Err: err, After: min(backoff.RetryAfter(answer.Header), longestWait)}
	}
	return err
}
