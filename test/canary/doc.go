// Package canary proves that secrets stay secret: a test tells it what is secret, and
// it searches whatever a program leaves behind for it.
//
// # Flow
//
//	Secrets.Add, AddFile, AddManifests -> Secrets.Search(text)
//	Watch(pid) -> argv and environment of all that the process starts -> Search
//
// A secret is searched for as it is and in the forms that it takes on its way through
// programs: base64 (standard and for URLs, wherever it begins), escaped for URLs and
// for JSON, quoted by Go, and in hexadecimal digits. Of a secret of several lines, as a
// private key is, each line counts.
//
// # Rules
//
// What is found is reported by where and in which form, never by the value: a test's output
// is public too. Values of less than eight characters are refused, since they would be
// found everywhere. What stands in a Secret of a repository may be where the manifests
// are, in the work tree of a transform, and nowhere else; what is a credential may be
// nowhere.
package canary
