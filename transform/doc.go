// Package transform turns the files of a revision into the manifests that are to be
// applied: files in, files out.
//
// # Flow
//
//  1. [New] parses CMD ([ParseCommand]) and YMLDIR ([ParseDir]). Nothing is written to disk.
//  2. [Transform.Run] looks for CMD's program in the revision and on PATH (findProgram).
//  3. If there is one, runCommand has the revision checked out into INDIR, runs CMD under
//     package confine, and reads what it left in OUTDIR (collect). Nothing else counts.
//  4. If there is none, pick takes YMLDIR, kubernetes/ or the repository's root, and nothing
//     is written to disk.
//  5. In that directory the manifests are the .yaml, .yml and .json files but hidden ones and
//     what .kubesyncignore names (manifests). A kustomization is built instead (kustomize),
//     in a helper process ([Helpers]) that asks the daemon for each file.
//  6. The [Result] holds an [io/fs.FS] with exactly the manifests, each with git's hash of its
//     content. What comes straight from git is fetched together beforehand (fetch.go) and
//     read when it is asked for; what CMD or kustomize made is held in memory.
//
// # Cost
//
// A revision costs what it changes. What a search found in a directory that git knows by the
// same hash, with no link in it, stands for the next revision (search in manifests.go): the
// directory is not read, and its files are not fetched. The directories of a Result have a
// hash of what is in them, so that who reads it can do the same.
//
// # CMD has no shell
//
// CMD is split into words, as bash splits the value of an unquoted variable: white space
// separates, file name patterns are expanded. On top of that quotes and backslashes are
// understood, and $VAR and ${VAR}. Everything else that a shell would act on (pipes,
// redirections, $(…), several commands …) is refused when the configuration is read, with
// the advice to put it into a script: passed on as text it would do something else than was
// meant.
//
// # Safety rules
//
//   - CMD's environment lacks kubesync's own variables, KUBERNETES_*, proxy URLs with a
//     password in them, and what CMD_ENV_DENY names (cleanEnvironment).
//   - Without Landlock an application repository's CMD does not run (Options.confinement).
//     CMD_SANDBOX=off leaves the bounds on what CMD uses, and no other rule.
//   - INDIR is restored before every run, by who checks out, who must not follow the links
//     that CMD may have left there: the daemon has more rights than CMD.
//   - What a run left that failed, or that lost its directory, does not count.
//   - If TMPDIR itself is missing, that is an error of the sync and not of the configuration:
//     a repo without CMD needs none, and a volume may be mounted later.
//   - Symbolic links are resolved by this package (tree), never by the kernel, and only to
//     targets inside the repository (for OUTDIR: inside INDIR and OUTDIR).
//   - kustomize has no files, network and programs: its loader, which fetches what looks like
//     a URL, cannot be configured not to, and it holds global state.
//
// What CMD can reach over the network, for example a cloud's metadata service, is not for
// this package to decide.
package transform
