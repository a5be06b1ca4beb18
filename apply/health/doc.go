// Package health judges a live object by what it says of itself: is it as it was declared, is
// its controller still at it, or did that give up? An object goes in, a [Health] comes out. There
// is no cluster here.
//
//  1. [Of] looks first at a deletion, then at the annotations [FailOnAnnotation] and
//     [WaitForAnnotation], then at the kind.
//  2. A kind of which kstatus is wrong has a reader here: a Job (job.go), Rollout and AnalysisRun
//     of Argo Rollouts (argo.go), Canary of Flagger (flagger.go). All others are read by kstatus.
//  3. [Parse] reads the value of an annotation, when a manifest is checked and when its object is
//     judged: criteria in the syntax of kubectl wait.
//
// Safety rules:
//
//   - A status that cannot be read is [Unknown], never [Current]: gates and deletions rest on it.
//   - A status of an older generation says nothing, neither success nor failure.
//   - Whoever writes the manifests of an application repo writes the annotations, and may write the
//     status. What they cost is bounded: their length, the JSONPath that they may use, and how much is
//     searched. A panic of a library costs one judgement. A message shows values of the status
//     alone.
//
// One reader looks at the clock: kstatus gives a pod 15 s to be scheduled.
package health
