package curl

import (
	"strings"
	"testing"

	"github.com/kubesync/kubesync/sync/config/redact"
)

// planted is a password that could not be mistaken for something else. Its special
// characters make parsers stumble and quote what they stumble over.
const planted = "S3cr3t:pa/ss%zw@rd#"

// FuzzCurlOptions looks for a secret in what is said about the flags around it. A
// path may be printed, hence a secret given as a path.
func FuzzCurlOptions(f *testing.F) {
	for _, seed := range [][2]string{
		{"-u joe:", " -L"}, {"-H 'A: ", "'"}, {"--header=", ""}, {"-kLu", " -x"}, {"--max-time ", ""}, {"-z", "z"},
		{"--=", ""}, {"'", ""}, {"\\", "\\"}, {"--", " -- "}, {"-test.", ""}, {"--cert ", ""}, {"-\xff", ""}, {"-é", ""},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		options, problems := Parse(before+planted+after, redact.New())
		if strings.Contains(options.caFile+options.caDir+options.certFile+options.keyFile, "S3cr3t") {
			return
		}
		for _, problem := range problems {
			text := problem.Error()
			// A secret right behind two dashes, or behind letters, cannot be told from the name of a flag.
			if _, after, found := strings.Cut(text, " is not supported"); found && strings.HasPrefix(text, "the flag --") {
				text = after
			}
			for _, part := range []string{"S3cr3t", "pa/ss", "zw@rd", "pa%2Fss"} {
				if strings.Contains(text, part) {
					t.Errorf("%q stands in:\n%s", part, text)
				}
			}
		}
		if len(problems) == 0 {
			if _, _, err := options.transports(); err != nil {
				t.Errorf("accepted, and yet: %v", err)
			}
		}
	})
}
