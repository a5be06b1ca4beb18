// Package authorities reads the certificate authorities that servers are checked with.
package authorities
