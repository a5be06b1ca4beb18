package health

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
)

// longestCriteria is how long the value of an annotation may be, in bytes. It is read at every
// change of its object.
const longestCriteria = 1024

// criteria are what an annotation names, in its order.
type criteria []criterion

// criterion is one condition or one path.
type criterion struct {
	text string // as it is written

	condition, status string // of a condition

	path  *jsonpath.JSONPath // nil for a condition
	value string             // that the path is to have; "" for any
	shown bool               // the path is in the status, whose values may be shown
	// searches is how often the path, with all others of the annotation, goes through lists.
	searches int
}

// longestSearch is how many values may be looked at for one annotation: an application repo may
// write an annotation that searches, and an object of 1.5 MB to be searched. It takes less
// than a tenth of a second.
const longestSearch = 200_000

// Parse reads the value of an annotation: what kubectl wait takes behind --for, several of
// them separated by semicolons. The error says what is wrong and what to write.
func Parse(value string) (found criteria, err error) {
	defer func() {
		if thrown := recover(); thrown != nil { // in the parser of client-go
			found, err = nil, fmt.Errorf("%q cannot be parsed: %v", value, thrown)
		}
	}()
	if len(value) > longestCriteria {
		return nil, fmt.Errorf("it is %d bytes long: %d are accepted", len(value), longestCriteria)
	}
	searches := 0
	for _, text := range strings.Split(value, ";") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		one, err := parseOne(text)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		one.text = text
		found = append(found, one)
		searches += one.searches
	}
	for i := range found {
		found[i].searches = searches
	}
	if len(found) == 0 {
		return nil, errors.New("it is empty: write condition=Ready or jsonpath={.status.phase}=Running")
	}
	return found, nil
}

// parseOne reads one criterion.
func parseOne(text string) (criterion, error) {
	if rest, is := strings.CutPrefix(text, "condition="); is {
		name, status, given := strings.Cut(rest, "=")
		if name == "" || given && status == "" {
			return criterion{}, errors.New("the name or the status of the condition is missing: write condition=Ready or condition=Ready=False")
		}
		if !given {
			status = "true"
		}
		return criterion{condition: name, status: status}, nil
	}
	if rest, is := strings.CutPrefix(text, "jsonpath="); is {
		return parsePath(rest)
	}
	return criterion{}, errors.New("neither condition=… nor jsonpath=…: write condition=Ready, condition=Ready=False, jsonpath={.status.phase}=Running or, for a field that only has to be there, jsonpath={.status.phase}")
}

// parsePath reads a path and the value that it is to have.
func parsePath(text string) (criterion, error) {
	if strings.HasPrefix(text, `'`) || strings.HasPrefix(text, `"`) {
		return criterion{}, errors.New("the path has quotes around it, which are for a shell: write jsonpath={.status.phase}=Running")
	}
	parts := splitAtEquals(text)
	if len(parts) > 2 {
		return criterion{}, errors.New("more than one = in it: write jsonpath={.status.phase}=Running, and == in a filter")
	}
	expression, ok := relaxed(parts[0])
	if !ok {
		return criterion{}, errors.New("no path: write it as {.status.phase} or .status.phase")
	}
	found := criterion{}
	if len(parts) == 2 {
		if found.value = strings.Trim(parts[1], `'"`); found.value == "" {
			return criterion{}, errors.New("the value after = is missing: leave = out if the field only has to be there")
		}
	}
	found.path = jsonpath.New("").AllowMissingKeys(true)
	if err := found.path.Parse(expression); err != nil {
		return criterion{}, fmt.Errorf("the path cannot be parsed: %w", err)
	}
	tree, err := jsonpath.Parse("", expression)
	if err != nil {
		return criterion{}, fmt.Errorf("the path cannot be parsed: %w", err)
	}
	if len(tree.Root.Nodes) != 1 {
		return criterion{}, errors.New("more than one path: separate them by ; with a jsonpath= each")
	}
	steps, ok := tree.Root.Nodes[0].(*jsonpath.ListNode)
	if !ok || !selective(steps.Nodes, false) {
		return criterion{}, errors.New("a path is made of fields, indices and filters, such as {.status.nodes[0].phase} or {.status.conditions[?(@.type==\"Ready\")].status}: no .. and .*, no [0,1]")
	}
	if first, is := steps.Nodes[0].(*jsonpath.FieldNode); is {
		found.shown = first.Value == "status"
	}
	found.searches = searches(steps.Nodes)
	return found, nil
}

// searches counts the steps of a path that go through a list.
func searches(steps []jsonpath.Node) int {
	count := 0
	for _, step := range steps {
		switch step := step.(type) {
		case *jsonpath.ArrayNode:
			if !step.Params[1].Derived {
				count++ // more than one index
			}
		case *jsonpath.FilterNode:
			count += 1 + searches(step.Left.Nodes) + searches(step.Right.Nodes)
		}
	}
	return count
}

// larger reports whether something holds more values than a number, and what is left of that.
func larger(value any, left int) (more bool, rest int) {
	if left--; left < 0 {
		return true, 0
	}
	switch value := value.(type) {
	case map[string]any:
		for _, field := range value {
			if more, left = larger(field, left); more {
				return true, 0
			}
		}
	case []any:
		for _, item := range value {
			if more, left = larger(item, left); more {
				return true, 0
			}
		}
	}
	return false, left
}

// selective reports whether each step of a path goes down into what the step before selected,
// and none twice: then judging takes no longer than the object is large. With .. three times or
// [0,0,0] behind one another it could take for ever.
func selective(steps []jsonpath.Node, filter bool) bool {
	if len(steps) == 0 {
		return filter // the item itself, @
	}
	return !slices.ContainsFunc(steps, func(step jsonpath.Node) bool {
		switch step := step.(type) {
		case *jsonpath.FieldNode, *jsonpath.ArrayNode:
			return false
		case *jsonpath.FilterNode:
			if step.Operator == "exists" {
				return !selective(step.Left.Nodes, true)
			}
			known := slices.Contains([]string{"<", ">", "==", "!=", "<=", ">="}, step.Operator)
			return !known || !selective(step.Left.Nodes, true) || !selective(step.Right.Nodes, true)
		case *jsonpath.TextNode, *jsonpath.IntNode, *jsonpath.FloatNode, *jsonpath.BoolNode:
			return !filter
		}
		return true
	})
}

// relaxed completes a path as kubectl's RelaxedJSONPathExpression does: braces and the first dot may be
// left out. kubectl has it in the package of its command get, whose dependencies a daemon does
// not need; a test holds the two against each other.
func relaxed(path string) (complete string, ok bool) {
	if inner, opened := strings.CutPrefix(path, "{"); opened {
		if path, ok = strings.CutSuffix(inner, "}"); !ok {
			return "", false
		}
	}
	if path == "" || strings.ContainsAny(path, "{}") {
		return "", false
	}
	if len(path) > 1 {
		path = strings.TrimPrefix(path, ".")
	}
	return "{." + path + "}", true
}

// splitAtEquals splits at each single =, as kubectl wait does: == is a part of a filter.
func splitAtEquals(text string) []string {
	var parts []string
	var part strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] != '=':
			part.WriteByte(text[i])
		case i+1 < len(text) && text[i+1] == '=':
			part.WriteString("==")
			i++
		default:
			parts = append(parts, part.String())
			part.Reset()
		}
	}
	return append(parts, part.String())
}

// verdict is what a criterion comes to.
type verdict struct {
	holds bool
	why   string // it does not hold, or does
}

// check looks whether an object meets a criterion. An error says that it cannot be known.
func (c criterion) check(live *unstructured.Unstructured) (verdict, error) {
	fields, conditions, err := statusOf(live)
	if c.path == nil {
		if err != nil {
			return verdict{}, err
		}
		return c.checkCondition(live, fields, conditions), nil
	}
	if c.shown {
		if err != nil {
			return verdict{}, err
		}
		if stale := staleness(live, fields["observedGeneration"]); stale != "" {
			return verdict{why: stale}, nil
		}
	}
	return c.checkPath(live)
}

// staleness says that an observedGeneration is older than the object, "" if it is not.
func staleness(live *unstructured.Unstructured, observed any) string {
	if seen, known := generation(observed); known && seen < live.GetGeneration() {
		return fmt.Sprintf("its controller has seen generation %d, not %d", seen, live.GetGeneration())
	}
	return ""
}

// checkCondition looks at the first condition of that name, as kubectl does.
func (c criterion) checkCondition(live *unstructured.Unstructured, fields map[string]any, conditions []condition) verdict {
	for _, is := range conditions {
		if !strings.EqualFold(is.kind, c.condition) {
			continue
		}
		observed := is.generation
		if _, known := generation(observed); !known {
			observed = fields["observedGeneration"]
		}
		if stale := staleness(live, observed); stale != "" {
			return verdict{why: stale}
		}
		if strings.EqualFold(is.status, c.status) {
			return verdict{holds: true, why: reasoned(is.reason, is.message)}
		}
		why := fmt.Sprintf("it is %q", is.status)
		if said := reasoned(is.reason, is.message); said != "" {
			why += ", " + said
		}
		return verdict{why: why}
	}
	return verdict{why: "the object has no such condition yet"}
}

// longestShown is how much of a value a message shows.
const longestShown = 100

// checkPath looks at what the path selects. What it cannot go into is not there yet: a list may
// still be too short, a field may still be null.
func (c criterion) checkPath(live *unstructured.Unstructured) (verdict, error) {
	if c.searches > 0 {
		if more, _ := larger(live.Object, longestSearch/c.searches); more {
			return verdict{}, fmt.Errorf("it has more than %d values, too many to be searched: name them by an index instead of a filter", longestSearch/c.searches)
		}
	}
	results, err := c.path.FindResults(live.Object)
	if err != nil {
		return verdict{why: fmt.Sprintf("it selects nothing yet: %v", err)}, nil
	}
	var values []any
	for _, result := range results {
		for _, selected := range result {
			if value := valueOf(selected); value != nil {
				values = append(values, value)
			}
		}
	}
	switch {
	case len(values) == 0:
		return verdict{why: "it selects nothing yet"}, nil
	case len(values) > 1:
		return verdict{}, fmt.Errorf("it selects %d values, where one is wanted: name one by an index or a filter", len(values))
	case c.value == "":
		return verdict{holds: true}, nil
	}
	switch values[0].(type) {
	case map[string]any, []any:
		return verdict{}, errors.New("it selects an object or a list, where a single value is wanted")
	}
	got := strings.TrimSpace(fmt.Sprint(values[0]))
	if got == strings.TrimSpace(c.value) {
		return verdict{holds: true}, nil
	}
	if !c.shown {
		return verdict{why: "it is something else"}, nil
	}
	if len(got) > longestShown {
		got = strings.ToValidUTF8(got[:longestShown], "") + "…"
	}
	return verdict{why: fmt.Sprintf("it is %q", got)}, nil
}

// valueOf takes a value out of its wrapping; nil for none.
func valueOf(selected reflect.Value) any {
	if !selected.IsValid() || !selected.CanInterface() {
		return nil
	}
	return selected.Interface()
}
