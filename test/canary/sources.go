package canary

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
)

// AddFile makes the content of a file a secret. A missing file is none.
func (s *Secrets) AddFile(path string) error {
	content, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("secret: %w", err)
	}
	if value := bytes.TrimSpace(content); len(value) >= Shortest {
		return s.Add(Credential, string(value))
	}
	return nil
}

// AddKubeconfig makes the tokens, passwords and keys of a kubeconfig file secrets.
func (s *Secrets) AddKubeconfig(path string) error {
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return fmt.Errorf("secrets of a kubeconfig: %w", err)
	}
	for _, user := range config.AuthInfos {
		for _, value := range []string{user.Token, user.Password, string(user.ClientKeyData)} {
			if value == "" {
				continue
			}
			if err := s.Add(Credential, value); err != nil {
				return fmt.Errorf("kubeconfig %s: %w", path, err)
			}
		}
	}
	return nil
}

// AddManifests makes what stands in the Secrets of the manifests below a directory
// secrets. What is no YAML, or too short, counts as none: tests have such files, and
// register what they put there themselves.
func (s *Secrets) AddManifests(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		switch filepath.Ext(path) {
		case ".yaml", ".yml", ".json":
		default:
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		s.AddManifest(content)
		return nil
	})
}

// AddManifest makes what stands in the Secrets of a file of manifests secrets, up to
// where it is no YAML.
func (s *Secrets) AddManifest(content []byte) {
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		var document any
		if err := documents.Decode(&document); err != nil {
			return
		}
		s.addSecretsIn(document)
	}
}

// addSecretsIn looks for Secrets in a document, also in lists.
func (s *Secrets) addSecretsIn(document any) {
	object, ok := document.(map[string]any)
	if !ok {
		return
	}
	if items, ok := object["items"].([]any); ok {
		for _, item := range items {
			s.addSecretsIn(item)
		}
	}
	if object["kind"] != "Secret" {
		return
	}
	s.addValues(object["stringData"], func(text string) string { return text })
	s.addValues(object["data"], func(text string) string {
		decoded, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return text
		}
		return string(decoded)
	})
}

// addValues makes the values of a map secrets.
func (s *Secrets) addValues(values any, decode func(string) string) {
	entries, _ := values.(map[string]any)
	for _, value := range entries {
		if text, ok := value.(string); ok && len(decode(text)) >= Shortest {
			_ = s.Add(Data, decode(text)) // it is long enough
		}
	}
}
