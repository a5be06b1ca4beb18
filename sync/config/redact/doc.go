// Package redact keeps secrets out of what kubesync prints.
//
// A [Redactor] masks every secret that it knows, whichever text it turns up in. [URLs] and [Basic] find the
// secrets in URLs and credentials, and [Shown] returns a URL that may be printed.
package redact
