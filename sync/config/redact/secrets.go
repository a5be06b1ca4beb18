package redact

import (
	"net/url"
	"strings"
	"unicode"
)

// Basic returns what must not be printed of a user and a password. A user's
// name is no secret unless it stands in for the password, as access tokens do.
func Basic(user, password string) []string {
	secrets := []string{password, user + ":" + password}
	if password == "" || password == "x-oauth-basic" {
		secrets = append(secrets, user)
	}
	return secrets
}

// URLs returns what must not be printed of the URLs in a text: user and
// password, and what a query carries. It finds them in broken URLs as well.
func URLs(text string) []string {
	var secrets []string
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) || r == '"' || r == '\'' }) {
		scheme, rest, found := strings.Cut(word, "://")
		if !found {
			continue
		}
		parsed, err := url.Parse(word)
		if err != nil {
			if userinfo := rest[:max(0, strings.LastIndexByte(rest, '@'))]; userinfo != "" {
				secrets = append(secrets, userinfoSecrets(userinfo)...)
			}
			continue
		}
		// The user of an ssh URL is an account, never a token.
		if _, hasPassword := parsed.User.Password(); parsed.User != nil && (hasPassword || !strings.HasSuffix(scheme, "ssh")) {
			userinfo, _, _ := strings.Cut(rest, "@")
			secrets = append(secrets, userinfoSecrets(userinfo)...)
		}
		secrets = append(secrets, querySecrets(parsed)...)
	}
	return secrets
}

// userinfoSecrets returns the secrets in the "user:password" of a URL, as it is
// written there and decoded.
func userinfoSecrets(userinfo string) []string {
	user, password, _ := strings.Cut(userinfo, ":")
	secrets := append(Basic(user, password), userinfo)
	plainUser, errUser := url.PathUnescape(user)
	plainPassword, errPassword := url.PathUnescape(password)
	if errUser == nil && errPassword == nil {
		secrets = append(secrets, Basic(plainUser, plainPassword)...)
	}
	return secrets
}

// querySecrets returns a URL's query and those of its values whose name says that
// they are secret: file servers take access tokens and signatures there.
func querySecrets(u *url.URL) []string {
	if u.RawQuery == "" {
		return nil
	}
	secrets := []string{u.RawQuery}
	for name, values := range u.Query() {
		name = strings.ToLower(name)
		for _, telltale := range []string{"token", "secret", "password", "key", "sig", "auth", "cred"} {
			if strings.Contains(name, telltale) {
				secrets = append(secrets, values...)
				break
			}
		}
	}
	return secrets
}

// Shown returns a URL without user, password and query.
func Shown(u *url.URL) string {
	shown := *u
	shown.User = nil
	shown.Fragment, shown.RawFragment = "", ""
	if shown.RawQuery != "" {
		shown.RawQuery = mask
	}
	return shown.String()
}
