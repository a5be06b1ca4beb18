package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/prune"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync/status/server"
	"github.com/kubesync/kubesync/transform"
)

const appURL = "https://git.example.com/team/app.git"

func TestDefaults(t *testing.T) {
	t.Parallel()
	config := mustConfigure(t, vars{"REPO": appURL})
	address, err := repo.ParseURL(appURL)
	if err != nil {
		t.Fatal(err)
	}
	wantRepos := []Repo{{Name: "app", URL: address, Interval: 5 * time.Minute, ConventionalDir: true, Tier: manifest.System, Prune: true}}
	if !reflect.DeepEqual(config.Repos, wantRepos) {
		t.Errorf("repos: got %+v, want %+v", config.Repos, wantRepos)
	}
	config.Repos, config.Redactor, config.secretFiles, config.Kubernetes = nil, nil, nil, Kubernetes{}
	want := Config{
		Interval:         5 * time.Minute,
		Timeout:          5 * time.Minute,
		Sandbox:          transform.SandboxAuto,
		PruneLimit:       prune.Limit{Percent: true, Value: 50},
		Drift:            apply.CorrectDrift,
		Resync:           time.Hour,
		SystemNamespaces: []string{"kube-system", "kube-public", "kube-node-lease"},
		DryRun:           true, // by configure
		ApplyConcurrency: 16,
		Lease:            "kubesync-app",
		OwnNamespace:     "kube-system",
		Listen:           server.Listen{Network: "tcp", Address: "127.0.0.1:9797", Assumed: true},
		LogLevel:         zerolog.InfoLevel,
		LogFormat:        LogAuto,
	}
	if !reflect.DeepEqual(config, want) {
		t.Errorf("got  %+v\nwant %+v", config, want)
	}
}

// TestValues has, for each variable, what is accepted and what becomes of it.
func TestValues(t *testing.T) {
	t.Parallel()
	secret := writeFile(t, "secret", "hunter22\n")
	directory := t.TempDir()
	list := writeFile(t, "list.json", "[]")
	firstRepo := func(get func(Repo) any) func(Config) any {
		return func(c Config) any { return get(c.Repos[0]) }
	}
	names := func(c Config) any {
		var names []string
		for _, r := range c.Repos {
			names = append(names, r.Name)
		}
		return strings.Join(names, " ")
	}
	interval := func(c Config) any { return []time.Duration{c.Interval, c.Repos[0].Interval} }
	both := func(d time.Duration) any { return []time.Duration{d, d} }
	prunes := firstRepo(func(r Repo) any { return r.Prune })
	version := firstRepo(func(r Repo) any { return r.Version.String() })
	yml := firstRepo(func(r Repo) any { return r.YMLDir })
	source := func(c Config) any { return c.List.String() }
	dryRun := func(c Config) any { return []bool{c.DryRun, c.DryRunDiff} }

	for name, test := range map[string]struct {
		set  vars
		get  func(Config) any
		want any
	}{
		"REPO by commas":      {vars{"REPO": "https://h/a.git,https://h/b"}, names, "a b"},
		"REPO by white space": {vars{"REPO": " https://h/a \n\tgit@h:team/b.git , file:///srv/c.git ssh://git@h/d http://h/e"}, names, "a b c d e"},
		"REPO odd name":       {vars{"REPO": "https://h/My_App!.git"}, names, "my-app"},
		"REPO dotted name":    {vars{"REPO": "https://h/a._b..c.git"}, names, "a.b.c"},
		"REPO long name":      {vars{"REPO": "https://h/" + strings.Repeat("x", 300)}, names, strings.Repeat("x", 244)},
		"CONFIG path":         {vars{"CONFIG": list}, source, list},
		"CONFIG file URL":     {vars{"CONFIG": "file://" + list}, source, list},
		"CONFIG localhost":    {vars{"CONFIG": "file://localhost" + list}, source, list},
		"CONFIG http":         {vars{"CONFIG": "http://h/list"}, source, "http://h/list"},
		"CONFIG https":        {vars{"CONFIG": "https://joe:pw12@h:8443/list?x=1#y"}, source, "https://h:8443/list?***"},
		"CMD":                 {vars{"CMD": " ./render --all "}, firstRepo(func(r Repo) any { return r.Command }), "./render --all"},
		"CMD_ON interval":     {vars{"CMD_ON": "interval"}, func(c Config) any { return c.CommandOnRevision }, false},
		"CMD_ON revision":     {vars{"CMD_ON": "revision"}, func(c Config) any { return c.CommandOnRevision }, true},
		"CMD_SANDBOX":         {vars{"CMD_SANDBOX": "require"}, func(c Config) any { return c.Sandbox }, transform.SandboxRequire},
		"CMD_SANDBOX off":     {vars{"CMD_SANDBOX": "off"}, func(c Config) any { return c.Sandbox }, transform.SandboxOff},
		"CMD_ENV_DENY":        {vars{"CMD_ENV_DENY": "A, B_2\nc"}, func(c Config) any { return c.CommandEnvDeny }, []string{"A", "B_2", "c"}},
		"YMLDIR":              {vars{"YMLDIR": "./deploy//prod/"}, yml, "deploy/prod"},
		"YMLDIR inner dots":   {vars{"YMLDIR": "a/../b"}, yml, "b"},
		"YMLDIR slash":        {vars{"YMLDIR": "//deploy/prod/"}, yml, "deploy/prod"},
		"YMLDIR slash alone":  {vars{"YMLDIR": "/"}, yml, "."},
		"YMLDIR slash warns":  {vars{"YMLDIR": "/x/"}, func(c Config) any { return c.Warnings }, []string{`YMLDIR: "/x/" is taken relative to the root of each repo: write "x"`}},
		"REPO with a slash": {vars{"REPO": "https://h/a.git/ file:///srv/c// git@h:d/"}, func(c Config) any {
			return c.Repos[0].URL.String() + " " + c.Repos[1].URL.String() + " " + c.Repos[2].URL.String()
		}, "https://h/a.git file:///srv/c git@h:d"},
		"YMLDIR root":         {vars{"YMLDIR": "."}, yml, "."},
		"YMLDIR dots in name": {vars{"YMLDIR": "..a"}, yml, "..a"},
		"RECURSIVE":           {vars{"RECURSIVE": "1"}, firstRepo(func(r Repo) any { return r.Recursive }), true},
		"TIER":                {vars{"TIER": "application"}, firstRepo(func(r Repo) any { return r.Tier }), manifest.Application},
		"INTERVAL seconds":    {vars{"INTERVAL": "60"}, interval, both(time.Minute)},
		"INTERVAL fraction":   {vars{"INTERVAL": "1.5"}, interval, both(1500 * time.Millisecond)},
		"INTERVAL duration":   {vars{"INTERVAL": "1m30s"}, interval, both(90 * time.Second)},
		"INTERVAL days":       {vars{"INTERVAL": "1.5d"}, interval, both(36 * time.Hour)},
		"INTERVAL least":      {vars{"INTERVAL": "1"}, interval, both(time.Second)},
		"INTERVAL empty":      {vars{"INTERVAL": " "}, interval, both(5 * time.Minute)},
		"VERSION_MODE":        {vars{"VERSION_MODE": "tag:v1"}, version, "tag:v1"},
		"VERSION_MODE file":   {vars{"VERSION_MODE": "worktree", "REPO": "file:///srv/x"}, version, "worktree"},
		"DRYRUN":              {vars{"DRYRUN": "true"}, dryRun, []bool{true, false}},
		"NAME":                {vars{"NAME": "site"}, names, "site"},
		"ONCE":                {vars{"ONCE": "yes"}, func(c Config) any { return c.Once }, true},
		"PRUNE off":           {vars{"PRUNE": "Off"}, prunes, false},
		"PRUNE no":            {vars{"PRUNE": " NO "}, prunes, false},
		"PRUNE 0":             {vars{"PRUNE": "0"}, prunes, false},
		"PRUNE false":         {vars{"PRUNE": "FALSE"}, prunes, false},
		"PRUNE empty":         {vars{"PRUNE": ""}, prunes, false},
		"PRUNE anything":      {vars{"PRUNE": "2"}, prunes, true},
		"PRUNE_LIMIT number":  {vars{"PRUNE_LIMIT": "20"}, func(c Config) any { return c.PruneLimit }, prune.Limit{Value: 20}},
		"PRUNE_LIMIT share":   {vars{"PRUNE_LIMIT": "0%"}, func(c Config) any { return c.PruneLimit }, prune.Limit{Percent: true}},
		"RESYNC duration":     {vars{"RESYNC": "90s"}, func(c Config) any { return c.Resync }, 90 * time.Second},
		"RESYNC seconds":      {vars{"RESYNC": "600"}, func(c Config) any { return c.Resync }, 10 * time.Minute},
		"WAIT":                {vars{"WAIT": "2m"}, func(c Config) any { return c.Wait }, 2 * time.Minute},
		"RESYNC off":          {vars{"RESYNC": "Off"}, func(c Config) any { return c.Resync }, time.Duration(0)},
		"DRIFT report":        {vars{"DRIFT": "report"}, func(c Config) any { return c.Drift }, apply.ReportDrift},
		"DRIFT interval":      {vars{"DRIFT": "interval"}, func(c Config) any { return c.Drift }, apply.CorrectDriftLater},
		"NAMESPACES":          {vars{"NAMESPACES": "a,b c"}, func(c Config) any { return c.Namespaces }, []string{"a", "b", "c"}},
		"SYSTEM_NAMESPACES":   {vars{"SYSTEM_NAMESPACES": "infra", "POD_NAMESPACE": "own"}, func(c Config) any { return c.SystemNamespaces }, []string{"infra", "own"}},
		"APPLY_CONCURRENCY":   {vars{"APPLY_CONCURRENCY": "256"}, func(c Config) any { return c.ApplyConcurrency }, 256},
		"TIMEOUT":             {vars{"TIMEOUT": "30"}, func(c Config) any { return c.Timeout }, 30 * time.Second},
		"LISTEN off":          {vars{"LISTEN": "OFF"}, func(c Config) any { return c.Listen.Off() }, true},
		"LISTEN all":          {vars{"LISTEN": ":80"}, func(c Config) any { return c.Listen }, server.Listen{Network: "tcp", Address: ":80"}},
		"LISTEN IPv6":         {vars{"LISTEN": "[::1]:0"}, func(c Config) any { return c.Listen.String() }, "[::1]:0"},
		"LISTEN socket":       {vars{"LISTEN": "unix:/run/k.sock"}, func(c Config) any { return c.Listen }, server.Listen{Network: "unix", Address: "/run/k.sock"}},
		"LISTEN socket URL":   {vars{"LISTEN": "unix:///run/k.sock"}, func(c Config) any { return c.Listen }, server.Listen{Network: "unix", Address: "/run/k.sock"}},
		"LISTEN default":      {vars{"LISTEN": " "}, func(c Config) any { return c.Listen.Assumed }, true},
		"LISTEN_TOKEN_FILE":   {vars{"LISTEN_TOKEN_FILE": secret}, func(c Config) any { return c.ListenToken.String() }, secret},
		"PROBE_LISTEN":        {vars{"PROBE_LISTEN": "localhost:1"}, func(c Config) any { return c.ProbeListen.String() }, "localhost:1"},
		"WEBHOOK_SECRET_FILE": {vars{"WEBHOOK_SECRET_FILE": secret}, func(c Config) any { return c.WebhookSecret.String() }, secret},
		"COMMIT_STATUS":       {vars{"COMMIT_STATUS": "true"}, func(c Config) any { return c.CommitStatus }, true},
		"LEASE":               {vars{"LEASE": "mine.example"}, func(c Config) any { return c.Lease }, "mine.example"},
		"LEASE of a list":     {vars{"CONFIG": list}, func(c Config) any { return c.Lease }, "kubesync"},
		"LOG_LEVEL":           {vars{"LOG_LEVEL": "WARN"}, func(c Config) any { return c.LogLevel }, zerolog.WarnLevel},
		"LOG_LEVEL trace":     {vars{"LOG_LEVEL": "trace", "DEBUG": "1"}, func(c Config) any { return c.LogLevel }, zerolog.TraceLevel},
		"LOG_LEVEL disabled":  {vars{"LOG_LEVEL": "disabled"}, func(c Config) any { return c.LogLevel }, zerolog.Disabled},
		"DEBUG":               {vars{"DEBUG": "1"}, func(c Config) any { return c.LogLevel }, zerolog.DebugLevel},
		"LOG_FORMAT":          {vars{"LOG_FORMAT": "json"}, func(c Config) any { return c.LogFormat }, LogJSON},
		"POD_NAMESPACE":       {vars{"POD_NAMESPACE": "own"}, func(c Config) any { return c.OwnNamespace }, "own"},
		"SSH files":           {vars{"SSH_KEY_FILE": secret, "SSH_KNOWN_HOSTS_FILE": list}, func(c Config) any { return c.Git }, Git{SSHKeyFile: secret, SSHKnownHostsFile: list}},
		"GIT_SSL_CAPATH":      {vars{"GIT_SSL_CAPATH": directory}, func(c Config) any { return c.Git }, Git{CADir: directory}},
		"kubectl -v":          {vars{"KUBECTL_OPTIONS": "-v=9"}, func(c Config) any { return c.LogLevel }, zerolog.InfoLevel},
		"kubectl flags": {vars{"KUBECTL_OPTIONS": "--v 8 --logtostderr=true --alsologtostderr --stderrthreshold 2 --match-server-version"}, func(c Config) any { return c.Warnings },
			[]string{"KUBECTL_OPTIONS: --alsologtostderr, --logtostderr, --match-server-version, --stderrthreshold, --v ignored: kubesync runs no kubectl, use LOG_LEVEL and LOG_FORMAT for its own log"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := test.set
			if set["REPO"] == "" && set["CONFIG"] == "" {
				set = set.with(vars{"REPO": appURL})
			}
			if got := test.get(mustConfigure(t, set)); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %#v, want %#v", got, test.want)
			}
		})
	}
}

// TestMistakes has, for each variable, what is refused and what the user reads.
func TestMistakes(t *testing.T) {
	t.Parallel()
	empty := writeFile(t, "empty", "\n")
	blank := writeFile(t, "blank", " \t\r\n \n")
	twoLines := writeFile(t, "two", "user:pw\nuser:pw\n")
	for name, test := range map[string]struct {
		set  vars
		want []string
	}{
		"nothing":             {vars{"REPO": "", "CONFIG": ""}, []string{"REPO: neither REPO nor CONFIG is set"}},
		"REPO separators":     {vars{"REPO": " , "}, []string{"REPO"}},
		"REPO scheme":         {vars{"REPO": "ftp://h/x"}, []string{"REPO: ", `"ftp://h/x"`, "https://"}},
		"REPO twice":          {vars{"REPO": "https://a/x https://b/x.git"}, []string{`REPO: https://a/x and https://b/x.git both have the name "x"`, "CONFIG"}},
		"REPO nameless":       {vars{"REPO": "https://h/___"}, []string{"REPO: the URL https://h/___"}},
		"CONFIG relative":     {vars{"CONFIG": "list.json"}, []string{`CONFIG: "list.json" is not a location`, "https://"}},
		"CONFIG scheme":       {vars{"CONFIG": "ftp://joe:hunter22@h/x"}, []string{`CONFIG: "ftp://h/x" is not a location`}},
		"CONFIG broken":       {vars{"CONFIG": "https://joe:hun%ter22@h/x"}, []string{"CONFIG: not a valid URL"}},
		"CONFIG host":         {vars{"CONFIG": "https:///x"}, []string{"CONFIG: ", "names no host"}},
		"CONFIG file host":    {vars{"CONFIG": "file://etc/list"}, []string{"CONFIG: ", "file:///path"}},
		"CONFIG missing":      {vars{"CONFIG": "/does/not/exist"}, []string{"CONFIG: open /does/not/exist: no such file"}},
		"CONFIG directory":    {vars{"CONFIG": "/"}, []string{"CONFIG: / is a directory"}},
		"CMD":                 {vars{"CMD": "a | b"}, []string{"CMD: "}},
		"CMD quote":           {vars{"CMD": "a 'b"}, []string{"CMD: "}},
		"CMD_ON":              {vars{"CMD_ON": "push"}, []string{`CMD_ON: "push" must be one of "interval", "revision"`}},
		"CMD_SANDBOX":         {vars{"CMD_SANDBOX": "on"}, []string{"CMD_SANDBOX: ", `"on"`, "require"}},
		"CMD_ENV_DENY":        {vars{"CMD_ENV_DENY": "A B=1 2C"}, []string{`CMD_ENV_DENY: "A B=1 2C": "B=1" is not a name`, `"2C" is not a name`}},
		"YMLDIR up":           {vars{"YMLDIR": "a/../../b"}, []string{`YMLDIR: "a/../../b" is not a path inside`}},
		"YMLDIR parent":       {vars{"YMLDIR": ".."}, []string{`YMLDIR: ".." is not a path inside`}},
		"YMLDIR absolute up":  {vars{"YMLDIR": "/../etc"}, []string{`YMLDIR: "../etc" is not a path inside`}},
		"CONFIG scheme off":   {vars{"CONFIG": "http://joe:hunter22@h/x", "CURL_OPTIONS": "--proto =https"}, []string{`CONFIG: "http://h/x": --proto in CURL_OPTIONS does not allow`}},
		"TIER":                {vars{"TIER": "root"}, []string{`TIER: "root"`, "application"}},
		"INTERVAL text":       {vars{"INTERVAL": "soon"}, []string{`INTERVAL: "soon" is neither`, `"5m"`}},
		"INTERVAL zero":       {vars{"INTERVAL": "0"}, []string{`INTERVAL: "0" is too short`, "1s"}},
		"INTERVAL negative":   {vars{"INTERVAL": "-5m"}, []string{`INTERVAL: "-5m" is too short`}},
		"INTERVAL days":       {vars{"INTERVAL": "999999d"}, []string{`INTERVAL: "999999d" is neither`}},
		"INTERVAL 0 days":     {vars{"INTERVAL": "-1d"}, []string{`INTERVAL: "-1d" is too short`}},
		"INTERVAL mixed days": {vars{"INTERVAL": "1dd"}, []string{`INTERVAL: "1dd" is neither`}},
		"INTERVAL tiny":       {vars{"INTERVAL": "10ms"}, []string{`INTERVAL: "10ms" is too short`}},
		"INTERVAL huge":       {vars{"INTERVAL": "99999999999999999999"}, []string{"INTERVAL: "}},
		"INTERVAL NaN":        {vars{"INTERVAL": "NaN"}, []string{`INTERVAL: "NaN"`}},
		"VERSION_MODE":        {vars{"VERSION_MODE": "branch"}, []string{`VERSION_MODE: version mode "branch"`, "tag:latest"}},
		"worktree of a host":  {vars{"VERSION_MODE": "worktree"}, []string{"REPO: version mode \"worktree\" needs a file:// URL"}},
		"REPOCREDS twice":     {vars{"REPOCREDS": "a:b", "REPOCREDS_FILE": "/x"}, []string{"REPOCREDS: REPOCREDS_FILE is set as well"}},
		"REPOCREDS lines":     {vars{"REPOCREDS": "user:pw\nmore"}, []string{"REPOCREDS: more than one line"}},
		"REPOCREDS_FILE none": {vars{"REPOCREDS_FILE": "/does/not/exist"}, []string{"REPOCREDS_FILE: ", "/does/not/exist"}},
		"REPOCREDS_FILE void": {vars{"REPOCREDS_FILE": empty}, []string{"REPOCREDS_FILE: ", "user:password"}},
		"REPOCREDS blank":     {vars{"REPOCREDS": "  "}, []string{"REPOCREDS: blank: it must be"}},
		"REPOCREDS_FILE gap":  {vars{"REPOCREDS_FILE": blank}, []string{"REPOCREDS_FILE: " + blank + ": blank: it must be"}},
		"REPOCREDS_FILE two":  {vars{"REPOCREDS_FILE": twoLines}, []string{"REPOCREDS_FILE: ", "more than one line"}},
		"SSH_KEY_FILE":        {vars{"SSH_KEY_FILE": "/no/key"}, []string{"SSH_KEY_FILE: open /no/key"}},
		"SSH_KNOWN_HOSTS":     {vars{"SSH_KNOWN_HOSTS_FILE": "/no/hosts"}, []string{"SSH_KNOWN_HOSTS_FILE: open /no/hosts"}},
		"GIT_SSL_CAINFO":      {vars{"GIT_SSL_CAINFO": "/no/ca"}, []string{"GIT_SSL_CAINFO: open /no/ca"}},
		"GIT_SSL_CAIFO":       {vars{"GIT_SSL_CAIFO": empty}, []string{"GIT_SSL_CAINFO: ", "holds no certificate"}},
		"GIT_SSL_CAPATH":      {vars{"GIT_SSL_CAPATH": "/no/cas"}, []string{"GIT_SSL_CAPATH: open /no/cas"}},
		"KUBECTL_OPTIONS":     {vars{"KUBECTL_OPTIONS": "--frobnicate --foo=bar -q"}, []string{"the flag --frobnicate is not", "the flag --foo is not", "the flag -q is not", "--kubeconfig"}},
		"CURL_OPTIONS":        {vars{"CURL_OPTIONS": "--frobnicate x -j --metalink"}, []string{"the flag --frobnicate is not", "the flag -j is not", "the flag --metalink is not", "--cacert"}},
		"PRUNE_LIMIT":         {vars{"PRUNE_LIMIT": "101%"}, []string{`PRUNE_LIMIT: "101%"`}},
		"PRUNE_LIMIT word":    {vars{"PRUNE_LIMIT": "half"}, []string{`PRUNE_LIMIT: "half"`}},
		"RESYNC":              {vars{"RESYNC": "never"}, []string{`RESYNC: "never" is neither`}},
		"DRIFT":               {vars{"DRIFT": "ignore"}, []string{`DRIFT: "ignore" is none of "correct", "report" and "interval"`}},
		"NAMESPACES":          {vars{"NAMESPACES": "ok,Not_ok,a.b"}, []string{`NAMESPACES: `, `"Not_ok" is not a valid name`, `"a.b" is not a valid name`}},
		"SYSTEM_NAMESPACES":   {vars{"SYSTEM_NAMESPACES": "*"}, []string{`SYSTEM_NAMESPACES: "*"`}},
		"APPLY_CONCURRENCY 0": {vars{"APPLY_CONCURRENCY": "0"}, []string{`APPLY_CONCURRENCY: "0" is not a number from 1 to 256`}},
		"APPLY_CONCURRENCY":   {vars{"APPLY_CONCURRENCY": "257"}, []string{`APPLY_CONCURRENCY: "257"`}},
		"TIMEOUT":             {vars{"TIMEOUT": "0.5"}, []string{`TIMEOUT: "0.5" is too short`}},
		"LIMITS":              {vars{"LIMITS": "file=2,fiel=1"}, []string{`LIMITS: "file=2,fiel=1": "fiel" is none of pack, `}},
		"LIMITS value":        {vars{"LIMITS": "file=big entries=0"}, []string{`LIMITS: "file=big entries=0": file=big: want a size such as "64Mi"`, "; entries=0: want more than nothing"}},
		"LISTEN port":         {vars{"LISTEN": "localhost:70000"}, []string{`LISTEN: "localhost:70000" must have a port`}},
		"LISTEN no port":      {vars{"LISTEN": "localhost"}, []string{`LISTEN: "localhost" is neither`}},
		"LISTEN socket":       {vars{"LISTEN": "unix:k.sock"}, []string{`LISTEN: "unix:k.sock" is not an absolute path`}},
		"LISTEN host":         {vars{"LISTEN": "http://h:1"}, []string{`LISTEN: "http://h:1" is neither`}},
		"LISTEN long socket":  {vars{"LISTEN": "unix:/" + strings.Repeat("x", 107)}, []string{"LISTEN: ", "too long"}},
		"LISTEN socket host":  {vars{"LISTEN": "unix://run/k.sock"}, []string{`LISTEN: "unix://run/k.sock" is not an absolute path`}},
		"LISTEN_TLS no key":   {vars{"LISTEN_TLS_CERT_FILE": empty}, []string{"LISTEN_TLS_KEY_FILE: not set"}},
		"LISTEN_TLS no cert":  {vars{"LISTEN_TLS_KEY_FILE": empty}, []string{"LISTEN_TLS_CERT_FILE: not set"}},
		"LISTEN_TLS_CERT":     {vars{"LISTEN_TLS_CERT_FILE": empty, "LISTEN_TLS_KEY_FILE": empty}, []string{"LISTEN_TLS_CERT_FILE: certificate ", "failed to find any PEM data"}},
		"LISTEN_TOKEN_FILE":   {vars{"LISTEN_TOKEN_FILE": empty}, []string{"LISTEN_TOKEN_FILE: ", "is empty"}},
		"LISTEN_TOKEN_FILE g": {vars{"LISTEN_TOKEN_FILE": blank}, []string{"LISTEN_TOKEN_FILE: " + blank + " is empty or blank"}},
		"PROBE_LISTEN":        {vars{"PROBE_LISTEN": "x"}, []string{`PROBE_LISTEN: "x" is neither`}},
		"PROBE_LISTEN same":   {vars{"LISTEN": ":1", "PROBE_LISTEN": ":1"}, []string{`PROBE_LISTEN: ":1" is also the address of LISTEN`}},
		"WEBHOOK_SECRET_FILE": {vars{"WEBHOOK_SECRET_FILE": empty}, []string{"WEBHOOK_SECRET_FILE: ", "is empty"}},
		"WEBHOOK_SECRET_F. g": {vars{"WEBHOOK_SECRET_FILE": blank}, []string{"WEBHOOK_SECRET_FILE: " + blank + " is empty or blank"}},
		"NOTIFY_URL":          {vars{"NOTIFY_URL": ","}, []string{"NOTIFY_URL: no URL"}},
		"LEASE":               {vars{"LEASE": "My_Lease"}, []string{`LEASE: "My_Lease" is not a valid name`}},
		"LOG_LEVEL":           {vars{"LOG_LEVEL": "loud"}, []string{`LOG_LEVEL: "loud" must be one of trace`}},
		"LOG_LEVEL number":    {vars{"LOG_LEVEL": "42"}, []string{`LOG_LEVEL: "42"`}},
		"LOG_FORMAT":          {vars{"LOG_FORMAT": "xml"}, []string{`LOG_FORMAT: "xml" must be one of "auto", "console", "json"`}},
		"POD_NAMESPACE":       {vars{"POD_NAMESPACE": "Own"}, []string{`POD_NAMESPACE: "Own" is not a valid name`}},
		"NAME":                {vars{"NAME": "My_Site"}, []string{`NAME: "My_Site" is not a valid name`}},
		"NAME for two":        {vars{"NAME": "site", "REPO": "https://h/a,https://h/b"}, []string{"NAME: it names one repo, but REPO holds 2"}},
		"DRYRUN diff":         {vars{"DRYRUN": "diff"}, []string{"no cluster is configured"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := test.set
			if _, given := set["REPO"]; !given && set["CONFIG"] == "" {
				set = set.with(vars{"REPO": appURL})
			}
			_, err := configure(t, set, outside(t))
			expect(t, err, test.want...)
			var list Errors
			if !errors.As(err, &list) {
				t.Errorf("the error is a %T", err)
			}
		})
	}
}

func TestAllMistakesAreReportedInOneGo(t *testing.T) {
	t.Parallel()
	_, err := configure(t, vars{
		"REPO": "ftp://h/x", "CONFIG": "here", "CMD": "'", "CMD_ON": "x", "CMD_SANDBOX": "x", "CMD_ENV_DENY": "1", "YMLDIR": "..", "TIER": "x",
		"INTERVAL": "x", "VERSION_MODE": "x", "REPOCREDS_FILE": "/x/x", "SSH_KEY_FILE": "/x/x", "SSH_KNOWN_HOSTS_FILE": "/x/x",
		"GIT_SSL_CAINFO": "/x/x", "GIT_SSL_CAPATH": "/x/x", "KUBECTL_OPTIONS": "--x", "CURL_OPTIONS": "--x", "PRUNE_LIMIT": "x", "DRIFT": "x", "RESYNC": "x", "WAIT": "x",
		"NAMESPACES": "X", "SYSTEM_NAMESPACES": "X", "APPLY_CONCURRENCY": "x", "TIMEOUT": "x", "LIMITS": "x", "LISTEN": "x", "PROBE_LISTEN": "x",
		"LISTEN_TLS_CERT_FILE": "/x/x", "LISTEN_TLS_KEY_FILE": "/x/x", "LISTEN_TOKEN_FILE": "/x/x",
		"WEBHOOK_SECRET_FILE": "/x/x", "NOTIFY_URL": "x", "LEASE": "X", "LOG_LEVEL": "x", "LOG_FORMAT": "x", "POD_NAMESPACE": "X", "NAME": "X",
	}, outside(t))
	var list Errors
	if !errors.As(err, &list) {
		t.Fatalf("got %v", err)
	}
	var got []string
	for _, mistake := range list {
		got = append(got, mistake.Variable)
	}
	for _, variable := range Variables() {
		switch variable.Name {
		case "REPOCREDS", "DRYRUN", "ONCE", "PRUNE", "RECURSIVE", "DEBUG", "COMMIT_STATUS": // cannot be wrong
		case "LISTEN_TLS_KEY_FILE": // named with the certificate
		default:
			if !slices.Contains(got, variable.Name) {
				t.Errorf("no mistake is reported for %s:\n%v", variable.Name, err)
			}
		}
	}
	if !strings.HasPrefix(err.Error(), "REPO: ") || got[len(got)-1] != "POD_NAMESPACE" {
		t.Errorf("the mistakes are not in the order of the documentation:\n%v", err)
	}
	if len(got) != 37 {
		t.Errorf("%d mistakes are reported, want one for each of 37 variables:\n%v", len(got), err)
	}
}

func TestTheDefaultList(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "kubesync.json", "[]")
	there := host{listFile: file}

	config, err := configure(t, vars{}, there)
	if err != nil {
		t.Fatal(err)
	}
	if config.List == nil || config.List.String() != file {
		t.Errorf("the list that is there is not used: %v", config.List)
	}
	config, err = configure(t, vars{"REPO": appURL}, there)
	if err != nil {
		t.Fatal(err)
	}
	if config.List != nil {
		t.Errorf("REPO is set, and %v is used nevertheless", config.List)
	}
}

func TestInAPod(t *testing.T) {
	t.Parallel()
	inside := outside(t)
	inside.pod = pod{inside: true, namespace: "sync-system"}
	config, err := configure(t, vars{"REPO": appURL}, inside)
	if err != nil {
		t.Fatal(err)
	}
	if !config.InPod || config.OwnNamespace != "sync-system" || config.ProbeListen.String() != ":9798" ||
		!slices.Contains(config.SystemNamespaces, "sync-system") {
		t.Errorf("got InPod %v, OwnNamespace %q, ProbeListen %q, SystemNamespaces %q",
			config.InPod, config.OwnNamespace, config.ProbeListen, config.SystemNamespaces)
	}
	config, err = configure(t, vars{"REPO": appURL, "PROBE_LISTEN": "off"}, inside)
	if err != nil {
		t.Fatal(err)
	}
	if !config.ProbeListen.Off() {
		t.Errorf("PROBE_LISTEN=off gives %q", config.ProbeListen)
	}
}

// TestLoad is the one test that sets variables of the process, hence not parallel.
func TestLoad(t *testing.T) {
	list := writeFile(t, "list.yaml", "[]")
	t.Setenv("REPO", appURL)
	t.Setenv("CONFIG", list)
	t.Setenv("INTERVAL", "7")
	t.Setenv("PRUNE", "")
	t.Setenv("TIMEOUT", "")
	t.Setenv("SOMETHING_ELSE", "is no mistake")
	t.Setenv("POD_NAMESPACE", "elsewhere")
	t.Setenv("KUBECTL_OPTIONS", "--server=https://host")
	config, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Repos) != 1 || config.List == nil || config.Interval != 7*time.Second || config.Repos[0].Prune ||
		config.Timeout != 5*time.Minute || config.OwnNamespace != "elsewhere" || config.Lease != "kubesync" {
		t.Errorf("got %+v", config)
	}
	t.Setenv("INTERVAL", "x")
	_, err = Load()
	expect(t, err, "INTERVAL: ")
}

// TestFindPod sets variables of the process, hence not parallel.
func TestFindPod(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "namespace")
	present := writeFile(t, "namespace", "from-file\n")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	for name, test := range map[string]struct {
		address, variable, file string
		inside                  bool
		namespace               string
	}{
		"outside":              {"", "ns", absent, false, ""},
		"no ServiceAccount":    {"10.0.0.1", "", absent, true, ""},
		"namespace in the pod": {"10.0.0.1", "ns", present, true, "ns"},
		"ServiceAccount":       {"10.0.0.1", "", present, true, "from-file"},
		"no service variables": {"", "", present, true, "from-file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", test.address)
			found := findPod(test.variable, test.file)
			if found.inside != test.inside || found.namespace != test.namespace {
				t.Errorf("got inside %v, namespace %q", found.inside, found.namespace)
			}
			if test.address == "" && found.inCluster != nil {
				t.Error("without the API server's address, there is a way to it")
			}
		})
	}
}

func TestCredentialsOfAFileAreReadAnew(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "creds", "joe:first-one\n")
	config := mustConfigure(t, vars{"REPO": appURL, "REPOCREDS_FILE": file})
	read := func() repo.Credentials {
		t.Helper()
		credentials, found, err := config.Repos[0].Credentials.Read()
		if err != nil || !found {
			t.Fatalf("got %v, %v", found, err)
		}
		return credentials
	}
	if got := read(); got.User != "joe" || got.Password != "first-one" {
		t.Error("the first credentials are not what the file holds")
	}
	if err := os.WriteFile(file, []byte("joe:second one: \r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := read(); got.User != "joe" || got.Password != "second one: " {
		t.Error("the second credentials are not what the file holds")
	}
	if got := config.Redactor.String("first-one, second one: ."); got != "***, ***." {
		t.Errorf("redacted: %q", got)
	}
	for _, blank := range []string{"", " \n", "\r\n\t", " : \n"} {
		if err := os.WriteFile(file, []byte(blank), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := config.Repos[0].Credentials.Read()
		expect(t, err, file, "blank: it must be")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	_, _, err := config.Repos[0].Credentials.Read()
	expect(t, err, file)
}

func TestSecretFileOfBlanksReadAnew(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "token", "12345678\n")
	config := mustConfigure(t, vars{"REPO": appURL, "LISTEN_TOKEN_FILE": file, "WEBHOOK_SECRET_FILE": file})
	if err := os.WriteFile(file, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []SecretFile{config.ListenToken, config.WebhookSecret} {
		_, err := secret.Read()
		expect(t, err, file, "is empty or blank")
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text, user, password string
	}{
		"both":     {"joe:pw12", "joe", "pw12"},
		"user":     {"token", "token", ""},
		"colons":   {"joe:a:b", "joe", "a:b"},
		"blanks":   {" joe: pw ", " joe", " pw "},
		"line end": {"joe:pw\r\n", "joe", "pw"},
		"escapes":  {"joe:p%40w", "joe", "p%40w"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := mustConfigure(t, vars{"REPO": appURL, "REPOCREDS": test.text})
			got, found, err := config.Repos[0].Credentials.Read()
			if err != nil || !found || got.User != test.user || got.Password != test.password {
				t.Errorf("user matches: %v, password matches: %v, found %v, error %v", got.User == test.user, got.Password == test.password, found, err)
			}
		})
	}
	if _, found, err := mustConfigure(t, vars{"REPO": appURL}).Repos[0].Credentials.Read(); found || err != nil {
		t.Errorf("without REPOCREDS: found %v, error %v", found, err)
	}
}

func TestVariablesAreDocumented(t *testing.T) {
	t.Parallel()
	for _, variable := range Variables() {
		if !strings.HasSuffix(variable.Meaning, ".") {
			t.Errorf("%s: the meaning does not end with a full stop", variable.Name)
		}
		for _, text := range []string{variable.Default, variable.Meaning} {
			if strings.Count(text, "'")%2 != 0 {
				t.Errorf("%s: a quote is not closed in %q", variable.Name, text)
			}
		}
	}
	var usage strings.Builder
	if err := Usage(&usage); err != nil {
		t.Fatal(err)
	}
	for _, variable := range Variables() {
		if !strings.Contains(usage.String(), "\n"+variable.Name+" ") {
			t.Errorf("%s is missing in the usage text", variable.Name)
		}
	}
	for line := range strings.Lines(usage.String()) {
		if len(line) > 101 {
			t.Errorf("a line of %d bytes: %s", len(line), line)
		}
	}
}

// TestNameOfClone has what a repo in REPO is called that is a clone in the directory
// "checkout", with the remote "origin" at …/site.git.
func TestNameOfClone(t *testing.T) {
	t.Parallel()
	clone := filepath.Join(t.TempDir(), "checkout")
	if err := os.MkdirAll(filepath.Join(clone, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(clone, ".git", name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("HEAD", "ref: refs/heads/master\n")
	write("config", "[remote \"origin\"]\n\turl = https://h/team/My_Site.git\n")
	worktree := vars{"REPO": "file://" + clone, "VERSION_MODE": "worktree"}
	name := func(set vars) string { return mustConfigure(t, set).Repos[0].Name }
	for given, want := range map[string]string{name(worktree): "my-site", name(worktree.with(vars{"NAME": "other"})): "other",
		name(vars{"REPO": "file://" + clone}): "checkout"} {
		if given != want {
			t.Errorf("called %q, want %q", given, want)
		}
	}
	writes, err := configure(t, worktree.with(vars{"DRYRUN": "off", "KUBECTL_OPTIONS": "--server=http://h"}), outside(t))
	if err != nil || writes.Repos[0].Name != "checkout" {
		t.Errorf("what writes is called %v, want the directory's name: %v", writes.Repos, err)
	}
	write("config", "[remote \"origin\n")
	damaged := mustConfigure(t, worktree)
	if damaged.Repos[0].Name != "checkout" || !strings.Contains(strings.Join(damaged.Warnings, "\n"), "cannot read its remote (set NAME to name it)") {
		t.Errorf("a damaged clone is called %q, with the warnings %q", damaged.Repos[0].Name, damaged.Warnings)
	}
	if ignored := mustConfigure(t, vars{"CONFIG": writeFile(t, "list.json", "[]"), "NAME": "x"}).Warnings; !slices.Contains(ignored, "NAME: ignored, REPO holds no repo") {
		t.Errorf("NAME without REPO: %q", ignored)
	}
}

// TestDryRunWords has what DRYRUN may be.
func TestDryRunWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]bool{
		"": {}, "0": {}, "Off": {}, "false": {}, "no": {}, "1": {true, false}, "yes": {true, false},
		"different": {true, false}, "diff": {true, true}, "DIFF": {true, true},
	} {
		if on, diff := parseDryRun(text); [2]bool{on, diff} != want {
			t.Errorf("%q: on %v, diff %v, want %v", text, on, diff, want)
		}
	}
}

func TestOwnVariables(t *testing.T) {
	t.Parallel()
	own := OwnVariables()
	for _, name := range []string{"REPO", "REPOCREDS", "REPOCREDS_FILE", "KUBECTL_OPTIONS", "CURL_OPTIONS", "GIT_SSL_CAIFO", "KUBECONFIG", "WEBHOOK_SECRET_FILE"} {
		if !slices.Contains(own, name) {
			t.Errorf("%s is missing", name)
		}
	}
	for _, name := range []string{"POD_NAMESPACE", "NAME", "PATH", ""} {
		if slices.Contains(own, name) {
			t.Errorf("%q is listed", name)
		}
	}
}
