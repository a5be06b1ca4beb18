package config

import (
	"os"
	"strings"

	"k8s.io/client-go/rest"
)

// serviceAccountNamespace is where the kubelet writes the namespace of a pod.
const serviceAccountNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// defaultOwnNamespace is where kubesync keeps its own objects if it does not run in
// a pod: where the shell script's users have it running.
const defaultOwnNamespace = "kube-system"

// pod is what a process finds out about the pod it runs in.
type pod struct {
	inside    bool
	namespace string                       // empty outside of a pod
	inCluster func() (*rest.Config, error) // nil without a ServiceAccount to use
}

// findPod looks whether the process runs in a pod. A pod's environment always holds
// the address of its API server, whether or not it may use a ServiceAccount.
func findPod(podNamespace, namespaceFile string) pod {
	var found pod
	if _, err := rest.InClusterConfig(); err == nil {
		found.inCluster = rest.InClusterConfig
	}
	file, err := os.ReadFile(namespaceFile)
	if os.Getenv("KUBERNETES_SERVICE_HOST") == "" && err != nil {
		return found
	}
	found.inside = true
	found.namespace = podNamespace
	if found.namespace == "" {
		found.namespace = strings.TrimSpace(string(file))
	}
	return found
}
