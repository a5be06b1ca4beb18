package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/rs/zerolog"
	"k8s.io/apimachinery/pkg/util/validation"
)

// LogFormat is the form of the log lines.
type LogFormat string

const (
	LogAuto    LogFormat = "auto" // console on a terminal, else JSON
	LogConsole LogFormat = "console"
	LogJSON    LogFormat = "json"
)

// oneOf returns a parser for a closed set of words.
func oneOf[T ~string](words ...T) func(string) (T, error) {
	return func(text string) (T, error) {
		accepted := make([]string, len(words))
		for i, word := range words {
			if text == string(word) {
				return word, nil
			}
			accepted[i] = strconv.Quote(string(word))
		}
		return "", fmt.Errorf("%q must be one of %s", text, strings.Join(accepted, ", "))
	}
}

// shortestDuration bounds INTERVAL and TIMEOUT: below it a daemon would do nothing
// but poll, or never finish anything.
const shortestDuration = time.Second

// parseDuration reads seconds ("300", "0.5") or a Go duration ("5m"), at least one
// second.
func parseDuration(text string) (time.Duration, error) {
	duration, err := parseSeconds(text)
	if err != nil {
		duration, err = time.ParseDuration(text)
	}
	if number, days := strings.CutSuffix(text, "d"); err != nil && days { // as sleep has it
		if duration, err = time.ParseDuration(number + "h"); err == nil && duration > math.MaxInt64/24 {
			err = errors.New("out of range")
		}
		duration *= 24
	}
	if err != nil {
		return 0, fmt.Errorf(`%q is neither a number of seconds nor a duration such as "90s" or "5m" (292 years at most)`, text)
	}
	if duration < shortestDuration {
		return 0, fmt.Errorf("%q is too short: it must be at least %v", text, shortestDuration)
	}
	return duration, nil
}

// parseOptional reads a duration, or "off" and its like as 0.
func parseOptional(text string) (time.Duration, error) {
	switch strings.ToLower(text) {
	case "0", "off", "no", "false":
		return 0, nil
	}
	return parseDuration(text)
}

// parseSeconds reads a decimal number of seconds.
func parseSeconds(text string) (time.Duration, error) {
	if strings.Trim(text, "0123456789.") != "" {
		return 0, errors.New("no number of seconds")
	}
	return time.ParseDuration(text + "s")
}

// mostConcurrency is more than an API server with default flow control serves one
// client at a time.
const mostConcurrency = 256

// parseConcurrency reads a number of requests in flight.
func parseConcurrency(text string) (int, error) {
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 || number > mostConcurrency {
		return 0, fmt.Errorf("%q is not a number from 1 to %d", text, mostConcurrency)
	}
	return number, nil
}

// parseLogLevel reads one of zerolog's names, in any case of letters.
func parseLogLevel(text string) (zerolog.Level, error) {
	level, err := zerolog.ParseLevel(strings.ToLower(text))
	if err != nil || level > zerolog.Disabled || level < zerolog.TraceLevel || level == zerolog.NoLevel {
		return zerolog.InfoLevel, fmt.Errorf("%q must be one of trace, debug, info, warn, error, fatal, panic, disabled", text)
	}
	return level, nil
}

// isSeparator reports whether a character separates the elements of a list.
func isSeparator(r rune) bool { return r == ',' || unicode.IsSpace(r) }

// splitList returns the elements of a list, nil if there are none: nil and empty are
// not the same where a list says what is allowed.
func splitList(text string) []string {
	elements := strings.FieldsFunc(text, isSeparator)
	if len(elements) == 0 {
		return nil
	}
	return elements
}

// parseNamespaces reads a list of namespaces; nil stands for an empty one.
func parseNamespaces(text string) ([]string, error) {
	var problems []error
	names := splitList(text)
	for _, name := range names {
		if _, err := parseNamespace(name); err != nil {
			problems = append(problems, err)
		}
	}
	return names, join(problems)
}

// parseNamespace checks the name of a namespace.
func parseNamespace(name string) (string, error) {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return "", fmt.Errorf("%q is not a valid name of a namespace (lower-case letters, digits and dashes, 63 at most)", name)
	}
	return name, nil
}

// parseObjectName checks the name of a Lease or a ConfigMap.
func parseObjectName(name string) (string, error) {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return "", fmt.Errorf("%q is not a valid name (lower-case letters, digits, dashes and dots, 253 at most)", name)
	}
	return name, nil
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// parseVariableNames reads a list of names of environment variables.
func parseVariableNames(text string) ([]string, error) {
	var problems []error
	names := splitList(text)
	for _, name := range names {
		if !variableName.MatchString(name) {
			problems = append(problems, fmt.Errorf("%q is not a name of an environment variable (letters, digits and _)", name))
		}
	}
	return names, join(problems)
}

// join puts several problems of one value on one line; nil if there are none.
func join(problems []error) error {
	if len(problems) == 0 {
		return nil
	}
	texts := make([]string, len(problems))
	for i, problem := range problems {
		texts[i] = problem.Error()
	}
	return errors.New(strings.Join(texts, "; "))
}
