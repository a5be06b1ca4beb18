package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"
)

// proof is what a request offers to show that its sender knows the secret.
type proof struct {
	token string // the secret itself
	mac   []byte // HMAC-SHA256 of the body
}

// signed are the headers with a signature, and what stands before it.
func signed() []struct{ header, prefix string } {
	return []struct{ header, prefix string }{
		{"X-Hub-Signature-256", "sha256="},
		{"X-Gitea-Signature", ""},
		{"X-Forgejo-Signature", ""},
		{"X-Hub-Signature", "sha256="}, // GitHub sends an older one here, with sha1=
	}
}

// offered finds the proof in the headers, false if there is none.
func offered(header http.Header) (proof, bool) {
	for _, s := range signed() {
		digits, found := strings.CutPrefix(header.Get(s.header), s.prefix)
		if !found || digits == "" {
			continue
		}
		mac, err := hex.DecodeString(digits)
		if err == nil && len(mac) == sha256.Size {
			return proof{mac: mac}, true
		}
	}
	token := header.Get("X-Gitlab-Token")
	return proof{token: token}, token != ""
}

// holds reports whether the proof is one, in a time that depends on nothing else.
func (p proof) holds(secret string, body []byte) bool {
	if p.mac == nil {
		a, b := sha256.Sum256([]byte(p.token)), sha256.Sum256([]byte(secret))
		return subtle.ConstantTimeCompare(a[:], b[:]) == 1
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hmac.Equal(mac.Sum(nil), p.mac)
}
