package health

import (
	"fmt"
	"strings"
	"testing"

	cmdget "k8s.io/kubectl/pkg/cmd/get"
)

// annotated is a custom resource with annotations of ours, at generation 3.
func annotated(waitFor, failOn, rest string) string {
	annotations := ""
	for name, value := range map[string]string{WaitForAnnotation: waitFor, FailOnAnnotation: failOn} {
		if value != "" {
			annotations += fmt.Sprintf("%q: %q, ", name, value)
		}
	}
	return fmt.Sprintf("{apiVersion: example.com/v1, kind: Thing, metadata: {name: a, generation: 3, annotations: {%s}}, %s}", annotations, rest)
}

func TestAnnotations(t *testing.T) {
	t.Parallel()
	const (
		ready    = "status: {observedGeneration: 3, phase: Running, replicas: 2, ratio: 0.5, done: true, conditions: [{type: Ready, status: 'True', reason: Up, message: serving}, {type: Stalled, status: 'False'}]}"
		notReady = "status: {observedGeneration: 3, phase: Pending, conditions: [{type: Ready, status: 'False', reason: NoDisk, message: disk is full}]}"
		stale    = "status: {observedGeneration: 2, phase: Running, conditions: [{type: Ready, status: 'True'}]}"
	)
	for name, test := range map[string]struct{ waitFor, failOn, rest, want string }{
		"condition":                               {"condition=Ready", "", ready, "current"},
		"condition, in whatever case":             {"condition=ready=TRUE", "", ready, "current"},
		"condition that is to be false":           {"condition=Stalled=False", "", ready, "current"},
		"condition that does not hold":            {"condition=Ready", "", notReady, `in progress: waits for condition=Ready: it is "False", NoDisk: disk is full`},
		"condition that is not there":             {"condition=Ready", "", "spec: {}", "in progress: waits for condition=Ready: the object has no such condition yet"},
		"condition of an older generation":        {"condition=Ready", "", stale, "in progress: its controller has seen generation 2, not 3"},
		"condition with a generation of its own":  {"condition=Ready", "", "status: {observedGeneration: 3, conditions: [{type: Ready, status: 'True', observedGeneration: 2}]}", "in progress: its controller has seen generation 2, not 3"},
		"condition newer than its status":         {"condition=Ready", "", "status: {observedGeneration: 2, conditions: [{type: Ready, status: 'True', observedGeneration: 3}]}", "current"},
		"condition, generation as a string":       {"condition=Ready", "", "status: {observedGeneration: '2', conditions: [{type: Ready, status: 'True'}]}", "in progress: its controller has seen generation 2, not 3"},
		"conditions that cannot be read":          {"condition=Ready", "", "status: {conditions: {Ready: 'True'}}", "unknown: what it waits for, condition=Ready, cannot be read: status.conditions is map[string]interface {}, not a list"},
		"path":                                    {"jsonpath={.status.phase}=Running", "", ready, "current"},
		"path without braces":                     {"jsonpath=.status.phase=Running", "", ready, "current"},
		"path without braces and dot":             {"jsonpath=status.phase=Running", "", ready, "current"},
		"value in quotes":                         {"jsonpath={.status.phase}='Running'", "", ready, "current"},
		"numbers and truth":                       {"jsonpath={.status.replicas}=2; jsonpath={.status.ratio}=0.5; jsonpath={.status.done}=true", "", ready, "current"},
		"path that only has to be there":          {"jsonpath={.status.phase}", "", notReady, "current"},
		"path to an object that has to be there":  {"jsonpath={.status}", "", notReady, "current"},
		"path through a filter":                   {`jsonpath={.status.conditions[?(@.type=="Ready")].status}=True`, "", ready, "current"},
		"path with another value":                 {"jsonpath={.status.phase}=Running", "", notReady, `in progress: waits for jsonpath={.status.phase}=Running: it is "Pending"`},
		"path that selects nothing":               {"jsonpath={.status.address}", "", ready, "in progress: waits for jsonpath={.status.address}: it selects nothing yet"},
		"path that selects null":                  {"jsonpath={.status.address}", "", "status: {address: null}", "in progress: it selects nothing yet"},
		"path without a status":                   {"jsonpath={.status.phase}=Running", "", "spec: {}", "in progress: it selects nothing yet"},
		"index that is not there yet":             {"jsonpath={.status.addresses[0].ip}", "", "status: {addresses: []}", "in progress: it selects nothing yet: array index out of bounds"},
		"path of an older generation":             {"jsonpath={.status.phase}=Running", "", stale, "in progress: its controller has seen generation 2, not 3"},
		"path outside the status":                 {"jsonpath={.spec.ready}=yes", "", "spec: {ready: 'yes'}, status: {observedGeneration: 1}", "current"},
		"values outside the status are not shown": {"jsonpath={.data.password}=right", "", "data: {password: secret}", "in progress: waits for jsonpath={.data.password}=right: it is something else"},
		"path to several values":                  {"jsonpath={.status.conditions[*].status}=True", "", ready, "unknown: it selects 2 values, where one is wanted"},
		"path to an object, with a value":         {"jsonpath={.status}=x", "", ready, "unknown: it selects an object or a list"},
		"all of several":                          {"condition=Ready;jsonpath={.status.phase}=Running;", "", ready, "current"},
		"one of several":                          {"condition=Ready; jsonpath={.status.phase}=Done", "", ready, `in progress: waits for jsonpath={.status.phase}=Done: it is "Running"`},
		"none of several":                         {"condition=Ready; jsonpath={.status.phase}=Done", "", notReady, `disk is full; jsonpath={.status.phase}=Done: it is "Pending"`},
		"instead of the kind's own":               {"jsonpath={.status.phase}=Pending", "", notReady, "current"},
		"fails":                                   {"", "condition=Ready=False", notReady, "failed: condition=Ready=False holds: NoDisk: disk is full"},
		"fails by the second":                     {"", "condition=Stalled; jsonpath={.status.phase}=Pending", notReady, "failed: jsonpath={.status.phase}=Pending holds"},
		"fails, whatever is waited for":           {"jsonpath={.status.phase}=Pending", "jsonpath={.status.phase}=Pending", notReady, "failed"},
		"does not fail, by its kind":              {"", "condition=Stalled", ready, "current"},
		"does not fail, by its kind not current":  {"", "condition=Stalled", notReady, "in progress: disk is full"},
		"does not fail, and waits":                {"condition=Ready", "condition=Stalled", notReady, "in progress: waits for condition=Ready"},
		"does not fail for an older generation":   {"", "jsonpath={.status.phase}=Running", stale, "in progress: Thing generation is 3"},
		"whether it fails cannot be read":         {"jsonpath={.kind}", "jsonpath={.status.conditions[*].type}=x", ready, "unknown: whether it has failed"},
		"written by hand, and broken":             {"phase=Running", "", ready, "unknown: annotation kubesync.io/wait-for cannot be read"},
		"written by hand, and broken, to fail":    {"jsonpath={.kind}", "jsonpath={", ready, "unknown: annotation kubesync.io/fail-on cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Of(parse(t, annotated(test.waitFor, test.failOn, test.rest)))
			if state, message, _ := strings.Cut(test.want, ": "); got.State != State(state) && !strings.Contains(got.Message, test.want) || got.State == State(state) && !strings.Contains(got.Message, message) {
				t.Errorf("got %+v, want %s", got, test.want)
			}
			if strings.Contains(got.Message, "secret") {
				t.Errorf("the message shows a value: %s", got.Message)
			}
		})
	}
}

// A wrong value is refused with what to write.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"":                                     "it is empty: write condition=Ready",
		" ; ":                                  "it is empty",
		"Ready":                                `"Ready": neither condition=… nor jsonpath=…: write`,
		"delete":                               "neither condition=… nor jsonpath=…",
		"condition=":                           "is missing: write condition=Ready",
		"condition==True":                      "is missing",
		"condition=Ready=":                     "is missing",
		"condition=Ready; jsonpath={.a":        `"jsonpath={.a": no path: write it as {.status.phase}`,
		"jsonpath=":                            "no path",
		"jsonpath={}":                          "no path",
		"jsonpath='{.status.phase}'=Running":   "which are for a shell",
		"jsonpath={.status.phase}=":            "the value after = is missing",
		"jsonpath={.status.phase}=''":          "the value after = is missing",
		"jsonpath={.a}=b=c":                    "more than one =",
		"jsonpath={.a[}":                       "the path cannot be parsed: unterminated array",
		"jsonpath={.a[x]}":                     "the path cannot be parsed: invalid array index x",
		"jsonpath={.a}{.b}":                    "no path",
		"jsonpath={..phase}":                   "no .. and .*",
		"jsonpath={.status..phase}":            "no .. and .*",
		"jsonpath={.status.*}":                 "no .. and .*",
		"jsonpath={.a[0,0]}":                   "no [0,1]",
		"jsonpath={.a['x','y']}":               "no [0,1]",
		"jsonpath={.a[?(@..b)]}":               "no .. and .*",
		"jsonpath={.a[?(@.b[0,0]>1)]}":         "no [0,1]",
		"jsonpath={.a[?(@.b<<1)]}":             "a path is made of",
		"jsonpath={.a b}":                      "a path is made of",
		strings.Repeat("condition=Ready;", 70): "it is 1120 bytes long: 1024 are accepted",
	} {
		if _, err := Parse(value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", value, err, want)
		}
	}
}

// Paths are completed as kubectl does it.
func TestRelaxedAsKubectl(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"a.b", ".a.b", "{a.b}", "{.a.b}", "..a", "{..a}", ".", "{.}", "{", "}", "{}", "{a", "a}", "a{b}c", "{a}{b}", "{{a}}", `a[?(@.b=="c")].d`, " a"} {
		want, err := cmdget.RelaxedJSONPathExpression(path)
		if got, ok := relaxed(path); ok != (err == nil) || got != want {
			t.Errorf("%q: %q %t, kubectl: %q %v", path, got, ok, want, err)
		}
	}
}

func BenchmarkOf(b *testing.B) {
	const status = "status: {observedGeneration: 3, phase: Running, conditions: [{type: Ready, status: 'True'}]}"
	for name, test := range map[string]struct{ waitFor, failOn string }{
		"plain":     {},
		"condition": {"condition=Ready", ""},
		"path":      {"jsonpath={.status.phase}=Running", ""},
		"filter":    {`jsonpath={.status.conditions[?(@.type=="Ready")].status}=True`, ""},
		"several":   {"condition=Ready;jsonpath={.status.phase}=Running", "condition=Stalled;jsonpath={.status.phase}=Failed"},
	} {
		object := parse(b, annotated(test.waitFor, test.failOn, status))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Of(object)
			}
		})
	}
	const filter = "jsonpath={.status.a[?(@>1)]};"
	many := strings.Repeat(filter, longestCriteria/len(filter))
	largest := parse(b, annotated(many, "", "status: {a: ["+strings.Repeat("1,", longestSearch/strings.Count(many, ";")-20)+"1]}"))
	b.Run("the most that is searched", func(b *testing.B) {
		for b.Loop() {
			Of(largest)
		}
	})
	object := parse(b, annotated("", "", status))
	b.Run("plain, without the look at annotations", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			builtIn(object)
		}
	})
}
