package config

import (
	"fmt"
	"strings"
	"testing"
)

// planted is a password that could not be mistaken for something else. Its special
// characters make parsers stumble and quote what they stumble over.
const planted = "S3cr3t:pa/ss%zw@rd#"

// TestNoSecretIsInAnyError plants a password wherever one may stand, in configurations
// that are broken in every way, and looks for it in all that is said.
func TestNoSecretIsInAnyError(t *testing.T) {
	t.Parallel()
	broken := vars{"INTERVAL": "x", "TIER": "x"} // so that there is an error in any case
	file := writeFile(t, "creds", planted+"\n"+planted)
	urls := []string{
		"https://joe:%s@host/x", "https://%s@host/x", "https://joe:%s@", "https://joe:%s", "ftp://joe:%s@host/x", "https://joe:%s@host:port/x",
		"joe:%s@host", "joe:%s@host:x", "https://host/x?token=%s", "://joe:%s@host", "https:joe:%s@host/x", "ssh://git:%s@host/x", "file://joe:%s@host/x",
	}
	var cases []vars
	for _, url := range urls {
		text := fmt.Sprintf(url, planted)
		cases = append(cases, vars{"REPO": text}, vars{"REPO": text + "," + text}, vars{"REPO": appURL + " " + text}, vars{"CONFIG": text},
			vars{"REPO": appURL, "CURL_OPTIONS": "-x '" + text + "'"}, vars{"REPO": appURL, "CURL_OPTIONS": "--proxy='" + text + "' --nope"})
	}
	for _, credentials := range []string{planted, "joe:" + planted, planted + "\n" + planted, "\n" + planted} {
		cases = append(cases, vars{"REPOCREDS": credentials}, vars{"REPOCREDS": credentials, "REPOCREDS_FILE": file}, vars{"REPOCREDS_FILE": file})
	}
	for _, options := range []string{
		"-u joe:%s", "-ujoe:%s", "--user=joe:%s", "--user joe:%s --bad", "-u joe:'%s", `-u joe:"%s`, "-H %s", "-H 'X: %s", "-H 'Authorization: Bearer %s' --bad",
		"-H'%s: x'", "--header '%s' extra", "--password %s", "--user:%s", "--token%s", "-z%s", "-m %s", "--max-time=%s", "--connect-timeout %s", "-k=%s", "%s", "-- %s",
		"-x %s", "-E /no/file:%s",
	} {
		text := fmt.Sprintf(options, planted)
		cases = append(cases, vars{"CURL_OPTIONS": text}, vars{"CURL_OPTIONS": "-L --nope " + text}, vars{"CURL_OPTIONS": text + " --nope"})
	}
	for _, options := range []string{
		"--token %s", "--token=%s --bad", "--token '%s", "--token:%s", "--token%s", "--password %s", "--password=%s --username x --bad", "--username %s --bad",
		"--username=joe --password=%s --kubeconfig /no/file", "-z%s", "%s", "-- %s", "--insecure-skip-tls-verify=%s", "-v=%s", "-v %s", "--bad=%s", "--bad %s",
		"--proxy-url http://joe:%s@h --bad", "-tok%s",
	} {
		text := fmt.Sprintf(options, planted)
		cases = append(cases, vars{"KUBECTL_OPTIONS": text}, vars{"KUBECTL_OPTIONS": "--nope " + text}, vars{"KUBECTL_OPTIONS": text + " --nope"})
	}
	for _, set := range cases {
		t.Run(fmt.Sprint(set), func(t *testing.T) {
			t.Parallel()
			if set["REPO"] == "" && set["CONFIG"] == "" {
				set = set.with(vars{"REPO": appURL})
			}
			_, err := configure(t, set.with(broken), outside(t))
			expect(t, err, "INTERVAL")
			hides(t, err.Error())
			if config, err := configure(t, set, outside(t)); err == nil {
				hides(t, strings.Join(config.Warnings, "\n"))
				for _, r := range config.Repos {
					hides(t, fmt.Sprintf("%v %+v %#v", r.URL, r.URL, r.URL))
				}
			} else {
				hides(t, err.Error())
			}
		})
	}
}

// hides checks that a text holds no half of the password.
func hides(t *testing.T, text string) {
	t.Helper()
	for _, part := range []string{"S3cr3t", "pa/ss", "zw@rd", "pa%2Fss"} {
		if strings.Contains(text, part) {
			t.Errorf("%q stands in:\n%s", part, text)
		}
	}
}

// TestNoSecretIsInWhatAListSays does the same for what is in CONFIG.
func TestNoSecretIsInWhatAListSays(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"unknown key":    `[{"url": "https://joe:` + planted + `@h/x", "other": 1}]`,
		"encoded":        `[{"url": "https://joe:S3cr3t%3Apa%2Fss@h/x", "other": 1, "name": "A"}]`,
		"mistake":        `[{"url": "https://joe:` + planted + `@h/x", "interval": "x"}]`,
		"bad url":        `[{"url": "ftp://joe:` + planted + `@h/x"}]`,
		"twice":          `[{"url": "https://joe:S3cr3t@h/x"}, {"url": "https://joe:S3cr3t@h/x"}]`,
		"not an array":   `{"url": "https://joe:` + planted + `@h/x"}`,
		"broken":         `[{"url": "https://joe:` + planted + `@h/x", ]]`,
		"broken YAML":    "- url: https://joe:" + planted + "@h/x\n url: x\n",
		"url of an url":  `[{"url": ["https://joe:` + planted + `@h/x"]}]`,
		"value as a key": `[{"https://joe:` + planted + `@h/x": "url"}]`,
		"elsewhere":      `[{"url": "https://h/x", "name": "https://joe:` + planted + `@h/x"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, warnings, err := read(t, content, nil)
			hides(t, strings.Join(warnings, "\n"))
			if err != nil {
				hides(t, err.Error())
			}
		})
	}
}
