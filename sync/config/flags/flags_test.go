package flags

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// FuzzKubectlOptions looks for a secret in what is said about the flags around it.
func FuzzKubectlOptions(f *testing.F) {
	for _, seed := range [][2]string{
		{"--token ", " --bad"}, {"-v", ""}, {"--=", ""}, {"'", ""}, {"\\", "\\"}, {"--", " -- "}, {"-test.", ""}, {"-z", "z"}, {"-\xff", ""}, {"-é", ""},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		genericclioptions.NewConfigFlags(false).WithDeprecatedPasswordFlag().AddFlags(set)
		set.IntP("v", "v", 0, "")
		for _, problem := range Parse(set, before+"S3cr3t:pa/ss%zw@rd#"+after) {
			text := problem.Error()
			// A secret right behind two dashes, or behind letters, cannot be told from the name of a flag.
			if _, after, found := strings.Cut(text, " is not supported"); found && strings.HasPrefix(text, "the flag --") {
				text = after
			}
			for _, part := range []string{"S3cr3t", "pa/ss", "zw@rd"} {
				if strings.Contains(text, part) {
					t.Errorf("%q stands in:\n%s", part, text)
				}
			}
		}
	})
}
