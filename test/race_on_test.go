//go:build race

package test

// race tells whether the tests run under the race detector, and so whether
// kubesync is built with it.
const race = true
