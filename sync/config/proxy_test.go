package config

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestProxyVariables(t *testing.T) {
	t.Parallel()
	const unreadable, scheme = "not the address of a proxy: use ", "the scheme must be one of "
	for value, want := range map[string]string{
		"proxy":                                 "",
		"proxy:3128":                            "",
		"10.0.0.1:3128":                         "",
		"[fd00::1]:3128":                        "",
		"http://proxy":                          "",
		"HTTPS://proxy:443/":                    "",
		"socks5://proxy:1080":                   "",
		"socks5h://proxy:1080":                  "",
		"http://user:hunter22@proxy:1":          "",
		"user:hunter22@proxy:1":                 "",
		"http://user:hunt%2F22@proxy:1":         "",
		"http://user:hunt%er22@proxy:1":         unreadable,
		"http://user:hunt/er22@proxy:1":         unreadable,
		"http://user:hunt#er22@proxy:1":         unreadable,
		"http://user:hunt er22@proxy:1":         unreadable,
		"http://proxy:port":                     unreadable,
		"http://proxy:99999":                    unreadable,
		"http://":                               unreadable,
		":3128":                                 unreadable,
		" http://proxy":                         unreadable,
		"http://proxy ":                         unreadable,
		"http//proxy.example.com:31x8":          unreadable,
		"user:1/hunter22@proxy:1":               unreadable,
		"socks4://user:hunter22@proxy":          scheme,
		"ftp://proxy":                           scheme,
		"http://user:hunter22@[fd00::1:3128":    unreadable,
		"http://user:hunter22@proxy:3128:":      unreadable,
		"http://user:hunter22@prox\ny":          unreadable,
		"http://user:hunter22@proxy, http://b/": unreadable,
	} {
		for _, name := range proxyVariables() {
			_, err := configure(t, vars{"REPO": appURL}, host{listFile: "/none", set: map[string]string{name: value}})
			ours := !strings.EqualFold(name, "ALL_PROXY")
			switch {
			case want == "" || want == scheme && !ours && strings.HasPrefix(value, "socks"):
				if err != nil {
					t.Errorf("%s=%q is refused: %v", name, value, err)
				}
				continue
			case err == nil:
				t.Errorf("%s=%q is let through", name, value)
				continue
			}
			var list Errors
			if expect(t, err, name+": "+want); !errors.As(err, &list) || strings.Contains(err.Error(), "hunt") {
				t.Errorf("%s=%q: %v", name, value, err)
			}
		}
	}
}

func TestAllProxyAlone(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]int{"ALL_PROXY": 1, "all_proxy": 1, "ALL_PROXY https_proxy": 0, "HTTP_PROXY": 0} {
		proxies := map[string]string{}
		for name := range strings.FieldsSeq(set) {
			proxies[name] = "http://user:hunter22@proxy:1"
		}
		config, err := configure(t, vars{"REPO": appURL}, host{listFile: "/none", set: proxies})
		if warnings := strings.Join(config.Warnings, " "); err != nil || strings.Count(warnings, "ALL_PROXY: kubesync itself") != want || strings.Contains(warnings, "hunter22") {
			t.Errorf("%s: error %v, warnings %q", set, err, warnings)
		}
	}
}

// TestIgnoredProxiesAreRefused holds parseProxy against what net/http makes of the variable,
// which it reads once in a process: so it runs itself.
func TestIgnoredProxiesAreRefused(t *testing.T) {
	t.Parallel()
	target, err := url.Parse("http://example.com/")
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("KUBESYNC_TEST_PROXY_RULE") != "" {
		proxy, err := http.ProxyFromEnvironment(&http.Request{URL: target})
		_, refused := parseProxy(os.Getenv("HTTP_PROXY"), "http")
		if direct := err != nil || proxy == nil; direct && refused == nil {
			t.Errorf("net/http goes there directly (proxy %v, error %v)", proxy, err)
		}
		return
	}
	for _, value := range []string{"proxy", "http://user:pa%ss@proxy:1", "http://proxy:port", " http://proxy", "user:pa/ss@proxy:1"} {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestIgnoredProxiesAreRefused$")
		cmd.Env = append(os.Environ(), "HTTP_PROXY="+value, "KUBESYNC_TEST_PROXY_RULE=1")
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("HTTP_PROXY=%q: %v\n%s", value, err, output)
		}
	}
}
