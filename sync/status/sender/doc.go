// Package sender delivers to servers of other owners, in the background, and tries again what
// they could not take.
//
// # Flow
//
//  1. [Sender.Queue] takes an item and never waits.
//  2. [Sender.Run] sends one item after the other.
//  3. [Judge] makes a [Later] of an answer that another try may mend: 408, 429 and 5xx.
//  4. A Later is tried again, ever later or when the server says (Retry-After). Any other error
//     is final.
//
// # Safety
//
//   - The queue is bounded: what does not fit is refused, or replaces what waits.
//   - A server cannot hold up the sender for longer than five minutes at a time.
package sender
