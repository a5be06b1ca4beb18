package flags

import (
	"reflect"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

func TestSplitWords(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"nothing":         {" \t\n ", nil},
		"words":           {" a  b\tc\nd ", []string{"a", "b", "c", "d"}},
		"single quotes":   {`-H 'A: b "c" \d'`, []string{"-H", `A: b "c" \d`}},
		"double quotes":   {`-H "A: 'b' \"c\" \\ \d \$x"`, []string{"-H", `A: 'b' "c" \ \d $x`}},
		"backslash":       {`a\ b \'c\" \\`, []string{"a b", `'c"`, `\`}},
		"joined":          {`-u'joe':"pa ss"x`, []string{"-ujoe:pa ssx"}},
		"empty words":     {`'' "" a`, []string{"", "", "a"}},
		"nothing special": {"pa$$wd #x a&b ~ *.pem `id` $(id) {a,b} ;", []string{"pa$$wd", "#x", "a&b", "~", "*.pem", "`id`", "$(id)", "{a,b}", ";"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Split(test.text)
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestSplitWordsRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"single": `a 'b`, "double": `a "b`, "double at the end": `a "`, "escaped end": `"a\"`, "backslash": `a\`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if words, err := Split(text); err == nil {
				t.Errorf("got %q", words)
			}
		})
	}
}

// FuzzSplitWords compares with a real shell's parser on what means the same to both.
func FuzzSplitWords(f *testing.F) {
	for _, seed := range []string{"", "a b", `'a b' "c d" e\ f`, `"\"\\\a"`, `''`, `a'b'"c"\d`, "a\nb", `"`, `'`, `\`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Split(text)
		for _, word := range got {
			if len(word) > len(text) {
				t.Errorf("the word %q is longer than the text", word)
			}
		}
		if strings.ContainsAny(text, "$`#&;|<>()~*?[]{}=!@+%^\r\x00") || strings.Contains(text, "\\\n") || !isPlain(text) {
			return
		}
		want, shellErr := shellWords(text)
		if (err == nil) != (shellErr == nil) {
			// A shell reads a backslash at the very end as one; here it is a mistake.
			if shellErr == nil && strings.HasSuffix(text, `\`) {
				return
			}
			t.Fatalf("%q: got error %v, a shell's is %v", text, err, shellErr)
		}
		if err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %q, a shell has %q", text, got, want)
		}
	})
}

// isPlain reports whether a text has printable ASCII and the blanks that both know.
func isPlain(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return (r < ' ' && r != '\t' && r != '\n') || r > '~' }) < 0
}

// shellWords splits a text with the parser of a shell.
func shellWords(text string) ([]string, error) {
	var words []string
	for word, err := range syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).WordsSeq(strings.NewReader(text)) {
		if err != nil {
			return nil, err
		}
		fields, err := expand.Fields(nil, word)
		if err != nil {
			return nil, err
		}
		words = append(words, fields...)
	}
	return words, nil
}
