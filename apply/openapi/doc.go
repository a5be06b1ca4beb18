// Package openapi knows what the API server of the newest supported Kubernetes
// accepts, for checks without a cluster: it holds objects against the API server's
// own OpenAPI documents, and custom resources against the schema of their
// CustomResourceDefinition.
//
// # Where the schemas come from
//
// They are embedded: schemas.txt is what a real API server publishes, without
// descriptions, one definition a line. A test writes it from the control plane that
// all tests run against, and holds it against that (go test -update). It takes 0.3 MB
// of the binary and, until an object is validated, no memory; of it only the
// definitions are decoded that objects need. A choice of schemas (--schema, or
// those that kubeconform downloads) would need a network or a disk for what is so
// small; strict decoding into the types of k8s.io/api would know neither lists with
// keys nor allowed values, and stop at the first wrong type.
//
// # What is found
//
// Fields that do not exist, values of the wrong type, missing and repeated entries,
// values that are not allowed. Numbers have ranges where the schema says so, which
// for the kinds of Kubernetes is nearly nowhere: the API server has them in code that
// cannot be imported, so the ranges of ports stand in ranges.go. What only that code or
// CEL knows is not found here; the dry run against a cluster finds it.
//
// The rules are the API server's and no JSON schema's: null is a field that is
// absent, a field that is not declared is a mistake, items of lists have keys. That is
// why this package walks objects itself. kube-openapi, which the API server has for the
// values in custom resources, follows no references and takes unknown fields and
// repeated items for granted; linked in, it costs a daemon that has a cluster half a
// megabyte of memory before it begins. No text shows a value: it may be a password.
package openapi
