// Package gitserver runs real git servers for tests and the demo: git's own
// http-backend behind HTTP or HTTPS, and upload-pack behind ssh, on 127.0.0.1.
//
//	s := gitserver.Start(t, gitserver.WithBasicAuth("user", "password"))
//	repo, err := s.CreateRepo("site")
//	sha, err := repo.Commit("first", map[string]string{"a.yaml": "…"})
//	s.URL("site")                          // http://127.0.0.1:20123/site.git
//	s.Behave(gitserver.CutInPack())        // until s.Behave(gitserver.Normal())
//	s.Count(gitserver.Fetch)               // how often objects were asked for
//
// A request passes the log, which counts it, then basic auth, then the server's
// Behaviour, which may answer it badly, and reaches git http-backend as a CGI
// program. The server allows what the big hosting sites allow: protocol v2,
// partial clones, and fetching any reachable commit by its hash. WithoutV2 and
// WithoutFilter make it an old one.
//
// A Repo is a bare repository on the server and a work tree beside it. Its
// commits have fixed authors and dates, one minute apart, so the same steps give
// the same hashes in every run.
package gitserver
