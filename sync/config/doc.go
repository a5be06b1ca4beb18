// Package config turns the environment of the process, and the list of repos in CONFIG,
// into values that nothing downstream needs to parse again.
//
// # Flow
//
//  1. [Load] has envconfig read the variables into the struct environment, whose tags hold
//     each variable's default and meaning. The tables of the documentation and [Usage] are
//     made from them.
//  2. build parses every variable into a [Config], and collects all mistakes into [Errors].
//     Addresses and flags are parsed by the packages that use them: server, notify, curl.
//  3. [List.Read] reads CONFIG from its source whenever it is called, decodes each entry
//     into a struct, names it (nameEntries), and returns a [Repo] for each.
//
// List.Read has no memory: it is its caller that keeps the last good list. An error of type
// [Unreachable] may pass; Errors do not.
//
// A repo in REPO is named by NAME, else after its URL. A dry run of a work tree is named
// after the remote that it was cloned from, for which .git/config is read and nothing in it
// run: it shows what would happen to that repo's objects. A process that writes never uses
// another name than that of its URL or NAME.
//
// # Safety rules
//
//   - No value that may be a secret stands in an error or a warning: REPOCREDS, what
//     KUBECTL_OPTIONS and CURL_OPTIONS carry, and user, password and query of any URL.
//     Errors about options name flags, never values. Parsers keep to that, and all
//     texts pass through the Redactor besides.
//   - Every secret that kubesync learns is added to Config.Redactor, which the log is
//     written through: libraries put into errors what they like.
//   - A repo of the list is of the application tier unless its entry says
//     "privileged: true", or so with a word that cannot be taken for its opposite ("true",
//     yes, on), which logs a warning. A number, or any other word, is an error there, not a
//     guess.
//   - The name of a repo, which decides what belongs to it, depends neither on the order
//     of the list nor on entries for other URLs; see nameEntries.
//   - An identity that KUBECTL_OPTIONS asks for (--as, --token …) also holds in a pod,
//     where client-go would drop some of it.
//   - Nothing is read from standard input.
package config
