// Package curl fetches a file over http or https as CURL_OPTIONS says, without a curl program.
//
// # Flow
//
//  1. [Parse] reads the options into [Options] and returns everything that is wrong with them.
//  2. [Options.Fetch] fetches the file: client builds the transports, and retries decides on the next attempt.
//
// # Safety rules
//
//   - A flag that is accepted does what curl does, or changes nothing. A flag that would make the fetch less
//     safe than its user believes is an error.
//   - Credentials, headers and client certificate go to the scheme, host and port of the URL, not to where a
//     redirect leads.
//   - No error shows a secret: errors about options name flags and never values, and errors of a fetch hold
//     no URL.
package curl
