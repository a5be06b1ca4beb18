package flags

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Parse reads a quoted list of flags into a flag set, and returns everything
// that is wrong with it. The texts name flags and never their values, of which any
// may be a secret.
func Parse(flags *pflag.FlagSet, text string) []error {
	words, err := Split(text)
	if err != nil {
		return []error{fmt.Errorf("cannot be split into words: %w", err)}
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
		problems = append(problems, errors.New("an argument is not a flag"))
	}
	return problems
}

// flagName cuts an unknown flag where its name may end and a value begin.
var flagName = regexp.MustCompile(`^(token|password|[a-zA-Z0-9.-]*)`)

// Unsupported is the error of a flag that is not supported.
type Unsupported struct{ Written string }

// Error names the flag.
func (u *Unsupported) Error() string {
	return fmt.Sprintf("the flag %s is not supported", u.Written)
}

// unknownFlag says that a flag is not supported.
func unknownFlag(unknown *pflag.NotExistError) error {
	if unknown.GetSpecifiedShortnames() != "" {
		return &Unsupported{Written: "-" + unknown.GetSpecifiedName()}
	}
	return &Unsupported{Written: "--" + flagName.FindString(unknown.GetSpecifiedName())}
}

// define makes an unknown flag known, so that the next attempt gets past it: all
// mistakes are to be reported, not only the first. The flag takes the following word
// unless that is a flag, too. It is false where that cannot be done.
func define(flags *pflag.FlagSet, unknown *pflag.NotExistError, words []string) bool {
	name, group := unknown.GetSpecifiedName(), unknown.GetSpecifiedShortnames()
	written := "--" + name
	flag := &pflag.Flag{Name: name, Value: new(Ignored)}
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

// Ignored is the value of a flag that is read over.
type Ignored struct{}

func (Ignored) String() string   { return "" }
func (Ignored) Set(string) error { return nil }
func (Ignored) Type() string     { return "" }

// flagError says what is wrong with a flag, without its value.
func flagError(err error) error {
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &missing):
		return fmt.Errorf("the flag --%s needs a value", missing.GetFlag().Name)
	case errors.As(err, &invalid):
		return fmt.Errorf("the value of the flag --%s is not a valid %s", invalid.GetFlag().Name, invalid.GetFlag().Value.Type())
	default:
		return errors.New("an argument that starts with a dash is not a flag")
	}
}
