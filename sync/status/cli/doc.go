// Package cli is `kubesync status`: what a board knows, on a terminal.
//
// # Flow
//
// It asks the kubesync that serves at LISTEN for an overview. When no one answers
// there, it reads what the sets' parents in the cluster record, says that it did, and
// makes an overview of that: the last result that was written down, which is not as much
// and not as fresh. Both are printed the same way: a table as kubectl prints, or JSON as
// the API has it.
//
// # Exit status
//
// 0 if all repos that were asked for are healthy, 1 if one is not, is not known, or
// nothing could be found out, 2 if it was called or configured wrongly.
//
// # Safety
//
// It only reads. The token goes to LISTEN and nowhere else; a certificate there has to
// be the very one that is configured.
package cli
