// Package origin says which URLs are of one server, so that what is secret towards one of
// them may be sent to the other.
package origin
