// Package config turns the environment of the process, and the list of repos that
// CONFIG points at, into values that nothing downstream needs to parse again.
//
// # Flow
//
//	variables --envconfig--> environment (text) --build--> Config
//	CONFIG    --source-----> bytes --listReader--> []Repo, as often as List.Read is called
//
// Each variable has one field in the struct environment, whose tags hold its default
// and its meaning. The README's table and the text of "kubesync help" are made of
// them. build parses every variable and collects what is wrong, so that a user reads
// all of it at once: see Errors.
//
// The list is read again and again while a daemon runs, and may be broken at any time.
// Read has no memory: to keep the last good list in force is up to its caller, who can
// tell by the error whether trying again may help.
//
// What a repo in REPO is called decides which apply set it is: NAME, else the name in its
// URL. Only a dry run of a work tree is called after the remote that it was cloned from,
// for which .git/config is read and nothing in it run: it is to show what becomes of that
// repo's set. What writes never gets another set than its own URL or NAME says.
//
// # Safety rules
//
//   - No value that may be a secret stands in an error or a warning: REPOCREDS, what
//     KUBECTL_OPTIONS and CURL_OPTIONS carry, and user, password and query of any URL.
//     Errors about options name flags, never values. Parsers keep to that, and all
//     texts pass through the Redactor besides.
//   - What kubesync learns to be secret is told to Config.Redactor, under whose Writer
//     the log is to be written: libraries put into errors what they like.
//   - Credentials, headers and client certificate for CONFIG go to the scheme, host and
//     port in CONFIG, not to where a redirect leads.
//   - A repo of the list is of the application tier unless its entry says
//     "privileged: true", or so with a word that cannot be taken for its opposite ("true",
//     yes, on), which is warned of. A number, or any other word, is an error there, not a
//     guess.
//   - The name of a repo, which decides what belongs to it, depends neither on the order
//     of the list nor on entries for other URLs; see nameEntries.
//   - A flag in CURL_OPTIONS that is accepted does what curl does, or changes nothing. One
//     that would make the fetch less safe than its user believes is an error.
//   - An identity that KUBECTL_OPTIONS asks for (--as, --token …) also holds in a pod,
//     where client-go would drop some of it.
//   - Nobody is asked for anything on standard input.
package config
