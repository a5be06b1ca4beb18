package config

import (
	"maps"
	"slices"
	"sync"
)

// secretFiles are the files that hold secrets, as far as the variables and the lists
// read so far name them. What was named once stays known: its content may still be valid.
// It may be used concurrently.
type secretFiles struct {
	mu    sync.Mutex
	names map[string]bool
}

// add makes further files known; empty names are left out.
func (s *secretFiles) add(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names = map[string]bool{}
	}
	for _, name := range names {
		if name != "" {
			s.names[name] = true
		}
	}
}

// all returns the names in their order.
func (s *secretFiles) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.names))
}

// SecretFiles returns the files that hold secrets of kubesync: keys, credentials, the
// kubeconfig and what it names, and the list of repos, whose URLs may hold passwords.
// Commands must not read them. It is to be asked anew before each run of a command, as
// lists and kubeconfigs change.
func (c Config) SecretFiles() []string {
	return append(c.secretFiles.all(), c.Kubernetes.secretFiles()...)
}

// secretFiles returns the kubeconfig, whether or not it is there now, and the files
// with tokens, keys and certificates that it or the options name. A certificate of ours
// is no secret, but often has its key in the same file.
func (k Kubernetes) secretFiles() []string {
	files := []string{*k.flags.KeyFile, *k.flags.CertFile}
	loader := k.flags.ToRawKubeConfigLoader()
	files = append(files, loader.ConfigAccess().GetLoadingPrecedence()...)
	// Of one that cannot be read, kubesync cannot use the keys either.
	if raw, err := loader.RawConfig(); err == nil {
		for _, user := range raw.AuthInfos {
			files = append(files, user.TokenFile, user.ClientKey, user.ClientCertificate)
		}
	}
	return slices.DeleteFunc(files, func(name string) bool { return name == "" })
}
