package promrules

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"go.yaml.in/yaml/v3"
)

const (
	monitoring = "../../deploy/components/monitoring"
	// exposition is what kubesync tells, as its own test holds it.
	exposition = "../../sync/status/metrics/testdata/metrics.txt"
)

// alerts returns the rules of the component, checked as Prometheus does at start.
func alerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(monitoring, "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var object struct{ Spec yaml.Node }
	if err := yaml.Unmarshal(content, &object); err != nil {
		t.Fatal(err)
	}
	spec, err := yaml.Marshal(&object.Spec)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(spec, false, model.UTF8Validation)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var found []rulefmt.Rule
	for _, group := range groups.Groups {
		found = append(found, group.Rules...)
	}
	return found
}

// firing is what fires, and when.
type firing struct {
	series string   // as promtool test rules words it, a value a minute
	at     []string // moments at which the alert is looked at …
	fires  []string // … and those of them at which it fires
}

// Each alert fires when it should and not before, and ends when all is well.
func TestAlerts(t *testing.T) {
	t.Parallel()
	cases := map[string]map[string]firing{
		"KubesyncAbsent": {
			"no one":           {`up{job="x"} 1x20`, []string{"4m", "6m"}, []string{"6m"}},
			"a standby alone":  {`kubesync_leading{pod="a"} 0x20`, []string{"6m"}, []string{"6m"}},
			"one of two leads": {"kubesync_leading{pod=\"a\"} 0x20\n kubesync_leading{pod=\"b\"} 1x20", []string{"6m", "20m"}, nil},
			"a failover":       {"kubesync_leading{pod=\"a\"} 1x5 0x15\n kubesync_leading{pod=\"b\"} 0x7 1x12", []string{"7m", "12m", "20m"}, nil},
		},
		"KubesyncListFailing": {
			"for long": {`kubesync_list_failing 0x5 1x15 0x10`, []string{"5m", "10m", "17m", "25m"}, []string{"17m"}},
		},
		"KubesyncSyncFailing": {
			"twice":    {`kubesync_consecutive_failures{repo="a"} 0 1 2x30`, []string{"30m"}, nil},
			"for long": {`kubesync_consecutive_failures{repo="a"} 0 1 2 3 4 5x20 0x10`, []string{"5m", "10m", "30m"}, []string{"10m"}},
		},
		"KubesyncNotSynced": {
			"polls hourly and well": {
				"kubesync_repo_info{repo=\"a\",tier=\"system\"} 1x300\n kubesync_last_success_timestamp_seconds{repo=\"a\"} 0x300\n" +
					"kubesync_last_sync_timestamp_seconds{repo=\"a\"} 0x300\n kubesync_next_sync_timestamp_seconds{repo=\"a\"} 18000x300", []string{"2h", "4h"}, nil},
			"fails for long": {
				"kubesync_repo_info{repo=\"a\",tier=\"system\"} 1x300\n kubesync_last_success_timestamp_seconds{repo=\"a\"} 0x300\n" +
					"kubesync_last_sync_timestamp_seconds{repo=\"a\"} 60+60x300\n kubesync_next_sync_timestamp_seconds{repo=\"a\"} 120+60x300",
				[]string{"1h", "70m", "80m", "4h"}, []string{"80m", "4h"}},
			"hangs": {
				"kubesync_repo_info{repo=\"a\",tier=\"system\"} 1x300\n kubesync_last_success_timestamp_seconds{repo=\"a\"} 0x300\n" +
					"kubesync_last_sync_timestamp_seconds{repo=\"a\"} 0x300\n kubesync_next_sync_timestamp_seconds{repo=\"a\"} 60x300",
				[]string{"1h", "80m"}, []string{"80m"}},
			"never did":            {`kubesync_repo_info{repo="a",tier="system"} 1x60`, []string{"10m", "20m"}, []string{"20m"}},
			"never, but suspended": {"kubesync_repo_info{repo=\"a\",tier=\"system\"} 1x60\n kubesync_suspended{repo=\"a\"} 1x60", []string{"20m"}, nil},
			"the other is suspended": {"kubesync_repo_info{repo=\"a\",tier=\"system\"} 1x60\n kubesync_suspended{repo=\"a\"} 0x60\n kubesync_suspended{repo=\"b\"} 1x60",
				[]string{"20m"}, []string{"20m"}},
		},
		"KubesyncStale": {
			"a moment": {`kubesync_watch_staleness_seconds 0 60 120 0x10`, []string{"1m", "2m", "5m"}, nil},
			"for long": {`kubesync_watch_staleness_seconds 0+60x10 0x5`, []string{"5m", "6m", "12m"}, []string{"6m"}},
		},
		"KubesyncPruneHeld": {
			"until approved": {`kubesync_prune_held{repo="a"} 0x5 1x20 0x10`, []string{"10m", "22m", "30m"}, []string{"22m"}},
		},
		"KubesyncConflict": {
			"one of many": {"kubesync_objects{repo=\"a\",state=\"conflict\"} 0x5 2x20 0x10\n kubesync_objects{repo=\"a\",state=\"synced\"} 9x40",
				[]string{"3m", "10m", "17m", "30m"}, []string{"17m"}},
		},
		"KubesyncObjectsFailed": {
			"one of many": {"kubesync_objects_health{repo=\"a\",health=\"failed\"} 0x5 1x20 0x10\n kubesync_objects_health{repo=\"a\",health=\"current\"} 9x40",
				[]string{"3m", "10m", "22m", "30m"}, []string{"22m"}},
		},
	}
	found := alerts(t)
	for _, rule := range found {
		if cases[rule.Alert] == nil {
			t.Errorf("nothing proves %s", rule.Alert)
		}
		for name, c := range cases[rule.Alert] {
			t.Run(rule.Alert+"/"+name, func(t *testing.T) { c.check(t, rule) })
		}
	}
	if len(found) != len(cases) {
		t.Errorf("there are %d alerts, and proofs of %d", len(found), len(cases))
	}
}

// check evaluates a rule once a minute, as Prometheus would.
func (f firing) check(t *testing.T, rule rulefmt.Rule) {
	storage := promqltest.LoadedStorage(t, "load 1m\n "+f.series+"\n")
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	expr, err := parser.ParseExpr(rule.Expr)
	if err != nil {
		t.Fatal(err)
	}
	alert := rules.NewAlertingRule(rule.Alert, expr, time.Duration(rule.For), time.Duration(rule.KeepFiringFor),
		labels.FromMap(rule.Labels), labels.FromMap(rule.Annotations), labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))
	query := rules.EngineQueryFunc(engine, storage)
	var fires []string
	last := f.at[len(f.at)-1]
	for now := time.Duration(0); now <= duration(t, last); now += time.Minute {
		if _, err := alert.Eval(t.Context(), 0, time.Unix(0, 0).Add(now), query, nil, 0); err != nil {
			t.Fatal(err)
		}
		legible(t, alert)
		for _, at := range f.at {
			if duration(t, at) == now && slices.ContainsFunc(alert.ActiveAlerts(), func(a *rules.Alert) bool { return a.State == rules.StateFiring }) {
				fires = append(fires, at)
			}
		}
	}
	if !slices.Equal(fires, f.fires) {
		t.Errorf("fires at %v, want %v", fires, f.fires)
	}
}

// legible expects that what a person will read could be filled in.
func legible(t *testing.T, alert *rules.AlertingRule) {
	t.Helper()
	for _, active := range alert.ActiveAlerts() {
		if active.Annotations.Get("summary") == "" || active.Annotations.Get("description") == "" || active.Labels.Get("severity") == "" {
			t.Errorf("an alert needs a summary, a description and a severity: %s, %s", active.Annotations, active.Labels)
		}
		active.Annotations.Range(func(l labels.Label) {
			if strings.Contains(l.Value, "error expanding template") || strings.Contains(l.Value, "<no value>") {
				t.Errorf("%s: %s", l.Name, l.Value)
			}
		})
	}
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Alerts and dashboard ask for metrics, and for labels of them, that there are.
func TestExpressions(t *testing.T) {
	t.Parallel()
	metrics := exported(t)
	for _, rule := range alerts(t) {
		check(t, rule.Alert, rule.Expr, metrics)
	}
	content, err := os.ReadFile(filepath.Join(monitoring, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(content, &dashboard); err != nil {
		t.Fatal(err)
	}
	ids := map[int]bool{}
	for _, panel := range dashboard.Panels {
		if ids[panel.ID] || len(panel.Targets) == 0 {
			t.Errorf("panel %q has no number of its own, or shows nothing", panel.Title)
		}
		ids[panel.ID] = true
		for _, target := range panel.Targets {
			check(t, panel.Title, strings.NewReplacer("$__rate_interval", "5m", "$repo", ".*").Replace(target.Expr), metrics)
		}
	}
	if len(dashboard.Panels) < 10 {
		t.Errorf("the dashboard has %d panels", len(dashboard.Panels))
	}
}

// exported returns the labels of each metric that kubesync exports.
func exported(t *testing.T) map[string]map[string]bool {
	t.Helper()
	content, err := os.ReadFile(exposition)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]bool{}
	sample := regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*)\})? `)
	label := regexp.MustCompile(`([a-z_]+)="`)
	for _, m := range sample.FindAllStringSubmatch(string(content), -1) {
		if found[m[1]] == nil {
			found[m[1]] = map[string]bool{}
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			found[m[1]][l[1]] = true
		}
	}
	return found
}

// check parses an expression and looks for what it asks for.
func check(t *testing.T, where, text string, metrics map[string]map[string]bool) {
	t.Helper()
	expr, err := parser.ParseExpr(text)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok || strings.HasPrefix(selector.Name, "process_") {
			return nil
		}
		has, known := metrics[selector.Name]
		if !known {
			t.Errorf("%s: there is no metric %s", where, selector.Name)
		}
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != model.MetricNameLabel && known && !has[matcher.Name] {
				t.Errorf("%s: %s has no label %s", where, selector.Name, matcher.Name)
			}
		}
		return nil
	})
}
