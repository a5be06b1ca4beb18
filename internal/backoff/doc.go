// Package backoff says when something is done again: a try that failed, a poll, a log line
// about what goes on.
//
// # Flow
//
//  1. [Wait] is the time before the next try, after so many failures in a row.
//  2. [RetryAfter] is the time that a server asks for; the longer of the two counts.
//  3. [Jitter] spreads what many loops do at the same interval.
//  4. [Sleep] waits, and ends with the context.
//  5. [Repeat] decides when a state that persists is logged again.
package backoff
