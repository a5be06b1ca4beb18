// Package bombs holds kubesync to its limits: repositories that are small to send and
// huge to read, made of git objects as no git would write them, and servers that never
// stop. Each is given to the built program, in a dry run without a cluster. It has to
// end in time with a message that names the limit and how to raise it, or to succeed,
// and its peak memory has to stay below 300 MB. As that is no matter of speed it is
// asserted, whatever else the machine does.
//
// All of it is built without the race detector, which takes several times the memory, and
// the time to make the bombs: go test -race leaves them out, and make test runs them after.
package bombs
