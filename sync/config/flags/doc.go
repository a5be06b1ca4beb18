// Package flags parses a variable that holds command-line flags, such as KUBECTL_OPTIONS.
//
// [Split] splits the text into words as a shell does, and [Parse] reads them into a flag set and returns
// everything that is wrong with them.
//
// # Safety rules
//
//   - Errors name flags and never their values, of which any may be a secret.
package flags
