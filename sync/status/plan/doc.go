// Package plan prints what a dry run found.
//
// # Flow
//
//  1. [Text] makes of a report the plan of a dry run with a cluster: a line per object that
//     would change, with its diff, and a summary.
//  2. [Manifests] makes of it the YAML of a dry run without a cluster, comments apart.
//  3. [Printer] prints either for each repo, and again only when it changes.
//
// # Safety
//
//   - Whatever others have written passes through the package printable, and no line of it can be
//     taken for one of the plan's.
//   - The diffs have the values of Secrets masked.
package plan
