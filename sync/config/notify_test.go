package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestNotifyURL(t *testing.T) {
	t.Parallel()
	config := mustConfigure(t, vars{"REPO": appURL,
		"NOTIFY_URL": "https://joe:hunter22@hooks.example.com/a?token=tok-1, slack+https://hooks.slack.example/services/T0000/B0000/abcdefghijklmnopqrstuvwx\nhttp://plain:8080"})
	if len(config.NotifyURLs) != 3 {
		t.Fatalf("got %v", config.NotifyURLs)
	}
	for i, want := range []struct {
		shown, secret string
		slack         bool
	}{
		{"https://hooks.example.com", "https://joe:hunter22@hooks.example.com/a?token=tok-1", false},
		{"slack+https://hooks.slack.example", "https://hooks.slack.example/services/T0000/B0000/abcdefghijklmnopqrstuvwx", true},
		{"http://plain:8080", "http://plain:8080", false},
	} {
		got := config.NotifyURLs[i]
		if got.Secret() != want.secret || got.Slack() != want.slack {
			t.Errorf("%d: got %q, slack %v", i, got.Secret(), got.Slack())
		}
		encoded, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		for _, shown := range []string{got.String(), fmt.Sprint(got), fmt.Sprintf("%+v", got), fmt.Sprintf("%#v", got), strings.Trim(string(encoded), `"`)} {
			if shown != want.shown {
				t.Errorf("%d: it is printed as %q, want %q", i, shown, want.shown)
			}
		}
	}
	for _, secret := range []string{"hunter22", "tok-1", "abcdefghijklmnopqrstuvwx", "/services/T0000/B0000/abcdefghijklmnopqrstuvwx"} {
		if got := config.Redactor.String("x " + secret); got != "x ***" {
			t.Errorf("of %q the redactor leaves %q", secret, got)
		}
	}
	for _, ordinary := range []string{"/a", "plain", "services"} {
		if got := config.Redactor.String("x " + ordinary); got != "x "+ordinary {
			t.Errorf("of %q the redactor makes %q", ordinary, got)
		}
	}
}

func TestNotifyURLMistakesShowNothing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"ftp://h/hunter22":            "address 1 of 1: it must start with",
		"https:///hunter22":           "address 1 of 1: no host",
		"http://h https://h#hunter22": "address 2 of 2: # must",
		"https://h/%zzhunter22":       "address 1 of 1: not a URL",
		"hunter22":                    "address 1 of 1: it must start with",
	} {
		_, err := configure(t, vars{"REPO": appURL, "NOTIFY_URL": text}, outside(t))
		expect(t, err, "NOTIFY_URL: "+want)
		if err != nil && strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%q is shown: %v", text, err)
		}
	}
}
