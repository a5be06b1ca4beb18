package transform

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/kubesync/kubesync/internal/limits"
)

func TestParseCommand(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		command string
		wants   string // part of the error; empty: it is fine
	}{
		"none":                 {"", ""},
		"blanks":               {" \n", ""},
		"a word":               {"render.sh", ""},
		"arguments":            {"./render.sh --env prod $OUTDIR", ""},
		"braced variable":      {"render.sh ${OUTDIR}/x", ""},
		"single quotes":        {`jq '.a | .b > "c"; $x'`, ""},
		"double quotes":        {`render.sh "a $OUTDIR; b"`, ""},
		"escaped":              {`render.sh a\;b \$x \#y`, ""},
		"over lines":           {"render.sh\n  --a\n  --b\n", ""},
		"continued line":       {"render.sh \\\n  --a", ""},
		"pattern":              {"render.sh *.yaml [a-c]?", ""},
		"number sign inside":   {"render.sh a#b", ""},
		"equals sign later":    {"render.sh A=b", ""},
		"lonely dollar":        {"render.sh $ a$", ""},
		"keyword as a word":    {"if done", ""},
		"several commands":     {"a; b", "`;` needs a shell"},
		"pipe":                 {"a | b", "`|` needs a shell"},
		"and":                  {"a && b", "`&&` needs a shell"},
		"background":           {"a & b", "`&` needs a shell"},
		"redirection":          {"a > b", "`>` needs a shell"},
		"numbered redirection": {"a 2>&1", "`>&` needs a shell"},
		"here document":        {"a <<EOF\nb\nEOF", "`<<` needs a shell"},
		"subshell":             {"(a)", "`(` needs a shell"},
		"command substitution": {"a $(b c)", `"$(b c)" needs a shell`},
		"backticks":            {"a `b`", "needs a shell"},
		"quoted substitution":  {`a "$(b)"`, `"$(b)" needs a shell`},
		"process substitution": {"a <(b)", `"<(b)" needs a shell`},
		"arithmetic":           {"a $((1+1))", `"$((1+1))" needs a shell`},
		"old arithmetic":       {"a $[1+1]", `"$[1+1]" needs a shell`},
		"default value":        {"a ${b:-c}", "only $VAR and ${VAR}"},
		"length":               {"a ${#b}", "only $VAR and ${VAR}"},
		"positional":           {"a $1", "only $VAR and ${VAR}"},
		"special parameter":    {"a $?", "only $VAR and ${VAR}"},
		"array element":        {"a ${b[1]}", "only $VAR and ${VAR}"},
		"extended pattern":     {"a @(b|c)", "needs a shell"},
		"assignment":           {"A=b c", `the assignment "A=b" needs a shell`},
		"tilde":                {"~/render.sh", "write $HOME"},
		"braces":               {"a {b,c}", "brace expansion"},
		"comment":              {"a # b", "a comment (#)"},
		"only a comment":       {"# b", "a comment (#)"},
		"open single quote":    {"a 'b", "without closing quote"},
		"open double quote":    {`a "b`, "without closing quote"},
		"open brace":           {"a ${b", "character 3"},
		"NUL":                  {"a\x00b", "NUL"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := ParseCommand(test.command)
			switch {
			case test.wants == "" && err != nil:
				t.Errorf("ParseCommand(%q): %v", test.command, err)
			case test.wants != "" && (err == nil || !strings.Contains(err.Error(), test.wants)):
				t.Errorf("ParseCommand(%q): %v, want an error with %q", test.command, err, test.wants)
			case test.wants == "":
			case strings.Contains(test.wants, "needs a shell") && !strings.Contains(err.Error(), "script"):
				t.Errorf("%v: does not say what to do", err)
			}
		})
	}
}

func TestExpandCommand(t *testing.T) {
	t.Parallel()
	env := []string{"OUTDIR=/out dir", "NAME=x", "LIST=a  b", "STAR=*.yaml", "EMPTY=", "PWD=/in"}
	files := repo{"b.yaml": "", "a.yaml": "", ".c.yaml": "", "d/e.yaml": "", "l": "-> d", "away": "-> /etc"}
	list := listIn(repoTree(files.fs(), limits.Limits{}), ".", "/in")
	tests := map[string]struct {
		command string
		words   []string // nil: an error
	}{
		"plain":             {"a b", []string{"a", "b"}},
		"quotes":            {`a "b  c" 'd"e' f\ g`, []string{"a", "b  c", `d"e`, "f g"}},
		"empty argument":    {`a "" ''`, []string{"a", "", ""}},
		"split value":       {"a $OUTDIR $LIST", []string{"a", "/out", "dir", "a", "b"}},
		"quoted value":      {`a "$OUTDIR" "${LIST}"`, []string{"a", "/out dir", "a  b"}},
		"inside a word":     {"a --out=${NAME}y", []string{"a", "--out=xy"}},
		"single quoted":     {"a '$NAME'", []string{"a", "$NAME"}},
		"unset":             {`a $UNSET "$UNSET" b`, []string{"a", "", "b"}},
		"set but empty":     {"a $EMPTY b", []string{"a", "b"}},
		"pattern":           {"a *.yaml", []string{"a", "a.yaml", "b.yaml"}},
		"pattern below":     {"a */*.yaml", []string{"a", "d/e.yaml", "l/e.yaml"}},
		"pattern of value":  {"a $STAR", []string{"a", "a.yaml", "b.yaml"}},
		"quoted pattern":    {`a "*.yaml"`, []string{"a", "*.yaml"}},
		"no match":          {"a *.txt .items[]", []string{"a", "*.txt", ".items[]"}},
		"absolute pattern":  {"a /etc/*", []string{"a", "/etc/*"}},
		"pattern in INDIR":  {"a /in/a.*", []string{"a", "/in/a.yaml"}},
		"outside by link":   {"a away/*", []string{"a", "away/*"}},
		"outside by dots":   {"a ../*", []string{"a", "../*"}},
		"program from one":  {"$NAME y", []string{"x", "y"}},
		"no program":        {"$UNSET", nil},
		"empty program":     {`"$UNSET" b`, nil},
		"ansi quotes":       {`a $'b\tc'`, []string{"a", "b\tc"}},
		"value is no shell": {`a $'$(b)' "\$(c)"`, []string{"a", "$(b)", "$(c)"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parsed, err := parseCommand(test.command)
			if err != nil {
				t.Fatal(err)
			}
			words, err := parsed.expand(env, list)
			if test.words == nil {
				if err == nil || !strings.Contains(err.Error(), "empty") {
					t.Errorf("%q, %v, want an error", words, err)
				}
				return
			}
			if err != nil || !slices.Equal(words, test.words) {
				t.Errorf("%q, %v, want %q", words, err, test.words)
			}
		})
	}
}

func FuzzParseCommand(f *testing.F) {
	for _, seed := range []string{"a b", `a "b $C" 'd' \e`, "a ${b}", "a *.x", "a; b", "a $(b)", "a ${b:-c}", "{a,b}", "a\n b # c", "$'\\x00'", "a [!b-]*"} {
		f.Add(seed)
	}
	none := func(string) ([]fs.DirEntry, error) { return nil, fs.ErrNotExist }
	f.Fuzz(func(t *testing.T, text string) {
		cmd, err := parseCommand(text)
		if err != nil {
			return
		}
		words, err := cmd.expand([]string{"b=x y", "C=*"}, none)
		if err == nil && len(words) == 0 {
			t.Errorf("%q expands to nothing, without an error", text)
		}
		for _, word := range words {
			if strings.ContainsRune(word, 0) {
				t.Errorf("%q expands to a word with NUL, which no program can be given", text)
			}
		}
		// Quoting is what the error messages advise: it has to work for everything.
		quoted := "'" + strings.ReplaceAll(strings.ReplaceAll(text, "\x00", ""), "'", `'\''`) + "'"
		if err := ParseCommand(quoted); err != nil {
			t.Errorf("%s: %v", quoted, err)
		}
	})
}
