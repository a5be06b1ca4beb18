// Package manifest turns a repo's files into the objects that may be applied, and needs no
// cluster for it. It is a chain of plain values, each stage tested alone:
//
//	fs.FS --Loader.Load--> Loaded --Check(Rules)--> Checked --InSteps--> steps of Objects
//
// The stages:
//
//  1. Load finds the files, splits them into documents (split), gives each the values that
//     kubectl gives it (parseJSON, parseYAML) and takes lists apart (addItems).
//  2. Check places each object in a namespace (place), refuses what the rules forbid
//     (allowed, gate), makes it what is sent (prepare) and, without a cluster, holds it
//     against schemas (schema).
//  3. InSteps puts the objects in the order in which they are written.
//
// Diff, Changes, YAML and Locate present objects and problems to people.
//
// # Differences from kubectl
//
// The same libraries read the files, and a fuzz test compares both. Where kubectl loses
// something silently, this package does not: a key that stands twice in a mapping is a
// problem, and the next document begins after the end marker "...". Those libraries report
// no lines, so go.yaml.in/yaml/v3 finds the places of list items and of mistakes.
//
// # Rules
//
//   - Load and Check report everything that is wrong at once, as [Problems] with file, line
//     and object. With any problem nothing is written and nothing is pruned: a set that is
//     half understood does not show what has left it. A problem that is Refused is forbidden
//     by the configuration, and no mistake of the manifest.
//   - What a parser quotes from a file never reaches an error: the text that does not parse
//     may be a password. Diff, Changes and YAML mask the values of Secrets.
//   - What git should not decide is left out: metadata that the server sets, status where it
//     is a subresource, the last-applied annotation, another apply set's label. stringData of
//     a Secret becomes data, since ownership of stringData protects no data. Of a repeated
//     variable or port the last one is sent. Null stays.
//   - An annotation under kubesync.io/ that does not exist is a problem: a slip in one that
//     protects an object from pruning must not go unnoticed.
//   - The application tier may not declare cluster-scoped objects, objects in system
//     namespaces, the RoleBinding that gives it its rights, or pods that Pod Security's level
//     baseline forbids. What cannot be judged is refused. This reports early what the API
//     server refuses anyway; the boundary is the rights of the user whom it impersonates, and
//     the label pod-security.kubernetes.io/enforce for pods that controllers make.
//
// # Cost
//
// A revision costs what it changes. A Loader knows files and directories by their hash: it
// returns the same Content for a file, and does not look into a directory (directory.go). A
// Checker compares with the last set, and looks at what that did not have if nothing else can
// come out differently (differences); a Content it judges again only if the rules say
// something else of its kind or namespace. Contents are shared and never changed, nor are the
// slices that Load and Check return. They are kept as JSON, which takes a tenth of the memory
// of a tree.
package manifest
