package config

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// parseFlags reads a quoted list of flags into a flag set, and returns everything
// that is wrong with it. The texts name flags and never their values, of which any
// may be a secret.
func parseFlags(flags *pflag.FlagSet, text string) []error {
	words, err := splitWords(text)
	if err != nil {
		return []error{fmt.Errorf("cannot be split into flags like a shell does: %w", err)}
	}
	flags.SetOutput(io.Discard)
	// Known, as the flag set would else answer it with a usage text.
	help := flags.BoolP("help", "h", false, "")

	var problems []error
	for {
		err := flags.Parse(words)
		if err == nil {
			break
		}
		var unknown *pflag.NotExistError
		if !errors.As(err, &unknown) {
			return append(problems, flagError(err))
		}
		problems = append(problems, unknownFlag(unknown))
		if !define(flags, unknown, words) {
			return problems
		}
	}
	if *help {
		problems = append(problems, errors.New("the flag --help is not supported"))
	}
	if flags.NArg() > 0 && len(problems) == 0 {
		problems = append(problems, errors.New("a word among the options belongs to no flag"))
	}
	return problems
}

// flagName cuts an unknown flag where its name may end and a value begin.
var flagName = regexp.MustCompile(`^(token|password|[a-zA-Z0-9.-]*)`)

// unsupportedFlag is the error of a flag that is not supported.
type unsupportedFlag struct{ written string }

// Error names the flag.
func (u *unsupportedFlag) Error() string {
	return fmt.Sprintf("the flag %s is not supported", u.written)
}

// unknownFlag says that a flag is not supported.
func unknownFlag(unknown *pflag.NotExistError) error {
	if unknown.GetSpecifiedShortnames() != "" {
		return &unsupportedFlag{written: "-" + unknown.GetSpecifiedName()}
	}
	return &unsupportedFlag{written: "--" + flagName.FindString(unknown.GetSpecifiedName())}
}

// define makes an unknown flag known, so that the next attempt gets past it: all
// mistakes are to be reported, not only the first. The flag takes the following word
// unless that is a flag, too. It is false where that cannot be done.
func define(flags *pflag.FlagSet, unknown *pflag.NotExistError, words []string) bool {
	name, group := unknown.GetSpecifiedName(), unknown.GetSpecifiedShortnames()
	written := "--" + name
	flag := &pflag.Flag{Name: name, Value: new(ignored)}
	if group != "" {
		if name[0] >= 0x80 {
			return false
		}
		flag.Name, flag.Shorthand = "-"+name, name
		written = name
	}
	i := slices.IndexFunc(words, func(word string) bool {
		return word == written || group != "" && strings.HasPrefix(word, "-") && strings.HasSuffix(word, group)
	})
	alone := i < 0 || i+1 == len(words) || strings.HasPrefix(words[i+1], "-")
	if alone && (group == "" || group == name) {
		flag.NoOptDefVal = "-"
	}
	flags.AddFlag(flag)
	return true
}

// ignored is the value of a flag that is read over.
type ignored struct{}

func (ignored) String() string   { return "" }
func (ignored) Set(string) error { return nil }
func (ignored) Type() string     { return "" }

// flagError tells what is wrong with a flag without its value.
func flagError(err error) error {
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &missing):
		return fmt.Errorf("the flag --%s lacks its value", missing.GetFlag().Name)
	case errors.As(err, &invalid):
		return fmt.Errorf("the value of the flag --%s is no %s", invalid.GetFlag().Name, invalid.GetFlag().Value.Type())
	default:
		return errors.New("a word that starts with a dash is no flag")
	}
}
