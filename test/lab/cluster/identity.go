package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Identity is a user's way into a cluster.
type Identity struct {
	Kubeconfig string         // path
	Subject    rbacv1.Subject // for role bindings
	config     *rest.Config
}

// Config returns the identity as a client configuration of its own, without a
// client-side rate limit.
func (i Identity) Config() *rest.Config { return rest.CopyConfig(i.config) }

// User returns a user with a client certificate. It may do what the groups may,
// and what Grant adds.
func (c *Cluster) User(name string, groups ...string) (Identity, error) {
	cert, err := c.ca.User(name, groups...)
	if err != nil {
		return Identity{}, err
	}
	return c.identity(name,
		rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name},
		clientcmdapi.AuthInfo{ClientCertificateData: cert.Cert, ClientKeyData: cert.Key})
}

// ServiceAccount creates a ServiceAccount if need be and returns it with a token
// that is valid for a day. The Namespace has to exist.
func (c *Cluster) ServiceAccount(ctx context.Context, namespace, name string) (Identity, error) {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return Identity{}, fmt.Errorf("client of the API server: %w", err)
	}
	accounts := client.CoreV1().ServiceAccounts(namespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return Identity{}, fmt.Errorf("ServiceAccount %s/%s: %w", namespace, name, err)
	}
	day := int64(24 * 60 * 60)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day}}
	token, err := accounts.CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return Identity{}, fmt.Errorf("token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return c.identity(namespace+"."+name,
		rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name},
		clientcmdapi.AuthInfo{Token: token.Status.Token})
}

// Grant allows who what the rules say in all namespaces.
func (c *Cluster) Grant(ctx context.Context, who Identity, rules ...rbacv1.PolicyRule) error {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("client of the API server: %w", err)
	}
	meta := metav1.ObjectMeta{GenerateName: "granted-"}
	role, err := client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("granting rules to %s: %w", who.Subject.Name, err)
	}
	return c.bind(ctx, client, who, role.Name)
}

// GrantRole binds who to an existing ClusterRole in all namespaces.
func (c *Cluster) GrantRole(ctx context.Context, who Identity, clusterRole string) error {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("client of the API server: %w", err)
	}
	return c.bind(ctx, client, who, clusterRole)
}

func (c *Cluster) bind(ctx context.Context, client kubernetes.Interface, who Identity, clusterRole string) error {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "granted-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole},
		Subjects:   []rbacv1.Subject{who.Subject},
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("binding %s to ClusterRole %s: %w", who.Subject.Name, clusterRole, err)
	}
	return nil
}

// identity writes the kubeconfig of a user who authenticates with auth.
func (c *Cluster) identity(name string, subject rbacv1.Subject, auth clientcmdapi.AuthInfo) (Identity, error) {
	file := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: c.URL(), CertificateAuthorityData: c.ca.PEM}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: &auth},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: name}},
		CurrentContext: "test",
	}
	path := c.path(strings.ReplaceAll(name, "/", "-") + ".kubeconfig")
	content, err := clientcmd.Write(file)
	if err != nil {
		return Identity{}, fmt.Errorf("kubeconfig of %s: %w", name, err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return Identity{}, fmt.Errorf("kubeconfig of %s: %w", name, err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		return Identity{}, fmt.Errorf("kubeconfig of %s: %w", name, err)
	}
	config.QPS = -1 // the API server's own limits are what counts
	return Identity{Kubeconfig: path, Subject: subject, config: config}, nil
}
