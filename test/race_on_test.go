//go:build race

package test

// race reports whether the tests run under the race detector, and so whether
// kubesync is built with it.
const race = true
