package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// issuer is who the API server says signs ServiceAccount tokens; it is their handler,
// too.
const issuer = "https://kubernetes.default.svc"

// Token returns a token of an existing ServiceAccount that is valid for as long as
// wanted, signed with the cluster's key: the API server itself issues none for less
// than ten minutes.
func (c *Cluster) Token(ctx context.Context, namespace, name string, valid time.Duration) (string, error) {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return "", fmt.Errorf("client of the API server: %w", err)
	}
	account, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	now := time.Now()
	claims := map[string]any{
		"iss": issuer, "aud": []string{issuer}, "sub": "system:serviceaccount:" + namespace + ":" + name,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(valid).Unix(),
		"kubernetes.io": map[string]any{"namespace": namespace, "serviceaccount": map[string]any{"name": name, "uid": account.UID}},
	}
	token, err := c.sign(claims)
	if err != nil {
		return "", fmt.Errorf("token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return token, nil
}

// sign makes a JSON web token (RFC 7515, ES256) of the claims.
func (c *Cluster) sign(claims map[string]any) (string, error) {
	content, err := os.ReadFile(c.path("serviceaccounts.key"))
	if err != nil {
		return "", err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return "", fmt.Errorf("%s holds no key", c.path("serviceaccounts.key"))
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return "", err
	}
	var parts []string
	for _, part := range []map[string]any{{"alg": "ES256", "typ": "JWT"}, claims} {
		text, err := json.Marshal(part)
		if err != nil {
			return "", err
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString(text))
	}
	signed := strings.Join(parts, ".")
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		return "", err
	}
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
