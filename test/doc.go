// Package test holds the scenarios: stories about the kubesync program as its
// users see it, run against real API servers and real git servers. The program
// is a black box here; only its environment, its output and the cluster count.
//
// A scenario is a file testdata/NAME.txtar: a script of one command a line, then
// the files it uses, unpacked into the working directory $WORK. Names say first
// what the story is about: prune_limit, tier_namespaces. Run some with
//
//	go test ./test -run 'TestScenarios/prune_'
//
// and read what a passing one did with -v. A failing one prints the script up to
// the failure and the end of every daemon's log; with -testwork its directory
// stays.
//
// # A story
//
//	# What is in git comes into the cluster.
//	cluster
//	gitserver start
//	repo site
//	commit site one 'First'
//	config REPO=$git/site.git
//	kubesync start
//	eventually synced site
//	is cm/greeting .data.text hello
//
//	-- one/greeting.yaml --
//	…
//
// Besides the commands below there are those of
// github.com/rogpeppe/go-internal/testscript: cmp, cp, env, exec, exists, grep,
// mkdir, mv, rm, stdout, stderr, symlink and so on. Single quotes keep spaces
// and dollar signs; patterns are Go's regular expressions.
//
// Variables that the commands set have lower-case names: $git, $rev, $site. From the start
// there is $upstream, the directory testdata/upstream: manifests in the shape of a dozen
// projects, which contain no secret.
// The daemon sees none of the script's variables, only what config says.
//
// # Servers
//
//	cluster [-bare] [-scheduler] [-audit] [NAME]
//		starts a clean control plane and sets KUBECONFIG (and $kubeconfig,
//		$cluster = its URL, $audit = its audit log). kubectl and the conditions
//		talk to the cluster started last, or chosen with `use NAME`. With NAME,
//		also sets $kubeconfig_NAME. Deleting a Namespace takes five seconds, a
//		constant of its controller. -bare leaves out kube-controller-manager,
//		which saves half a second where no Namespace is deleted, no garbage
//		collected, no workload's status, default ServiceAccount or rule of the
//		ClusterRoles admin, edit and view is needed. -audit keeps an audit log.
//	use NAME
//		makes a cluster the one that kubectl and the conditions talk to.
//	apiserver stop|start|freeze|thaw
//		an outage: connections refused, or accepted and never answered.
//	apiproxy start [NAME]
//		a way to the API server that can be made to fail, for whoever uses the
//		kubeconfig $NAME (proxy by default), as the administrator:
//		kubesync start KUBECONFIG=$proxy.
//	apiproxy down|up|cut|normal [NAME]
//	apiproxy fail CODE PATTERN [NAME] · deny CODE PATTERN [NAME] · hold PATTERN [NAME]
//		down refuses connections and cuts those that there are, which is all that cut
//		does. Requests whose METHOD PATH?QUERY matches are answered with an error, done and
//		answered with an error, or
//		done and not answered, until normal.
//	apiproxy answer CODE TYPE FILE PATTERN [NAME]
//		they are answered with the status and the file's content, of the content
//		type, instead of being asked.
//	apiproxy readable [NAME] · mute PATTERN [NAME] · say FILE PATTERN [NAME]
//		readable has all answers asked for in JSON from now on. Watches that match
//		carry nothing any more, without ending, until normal cuts them; or they carry
//		the file's content, a line an event, beside what the API server sends. say
//		waits for one to be open.
//	apiproxy relay [NAME] · silence [NAME]
//		a way to the API server that passes bytes, TLS and all, for the kubeconfig
//		$NAME (relay by default), which is the administrator's. silence makes the
//		connections that are open half-open: they carry nothing more and never end.
//	etcd save; etcd restore [FLAG…]
//		copies all that the cluster stores, and has the cluster go back to that, as
//		operators do who restore a backup: the servers start anew.
//	account NAMESPACE/NAME [CLUSTERROLE…]
//		makes a ServiceAccount with these roles in all namespaces and sets
//		$kubeconfig_NAME (- becomes _). The administrator that KUBECONFIG is for
//		stands above RBAC.
//	user NAME [CLUSTERROLE…]
//		the same for a user with a client certificate.
//	token [-for DURATION] NAMESPACE/NAME FILE
//		writes a token of a ServiceAccount, valid for a day or as long as said, into
//		a file, for a kubeconfig with tokenFile. The CA is $WORK/.cluster-0/ca.crt. The
//		API server takes tokens for a minute longer, hence durations below 0.
//	webhook start [NAME] · allow|hang [NAME] · deny CODE MESSAGE [NAME]
//		an admission webhook at the URL $NAME (webhook by default), with the caBundle
//		$NAME_bundle. It allows everything until it is set to do otherwise.
//
//	gitserver start [-https] [-auth USER:PASSWORD] [-v0] [-nofilter] [NAME]
//		serves the scenario's repositories and sets $NAME (git by default) to its
//		URL, $NAME_host to its host and port and, with -https, $NAME_ca to the CA
//		file. Passwords given here are secrets (see below).
//	gitserver ssh [NAME]
//		the same over ssh; sets $NAME (ssh by default), $NAME_key and
//		$NAME_known_hosts.
//	gitserver down|up|normal|cut|stall|corrupt|vanished|unauthorized [NAME]
//	gitserver distrusted|trusted|newhostkey [NAME]
//	gitserver slow DURATION [NAME] · status CODE [NAME] · redirect URL [NAME]
//	gitserver instead COMMIT [NAME]
//	gitserver auth USER:PASSWORD [NAME]
//		how it (mis)behaves from now on. down refuses connections; cut breaks
//		them in the middle of a pack, stall falls silent there, corrupt changes a
//		bit of it; vanished denies what it has just listed; instead answers with
//		another commit; distrusted shows another CA's certificate.
//	gitserver log [NAME], gitserver reset [NAME]
//		prints the requests since the last reset, a line each: KIND STATUS BYTES
//		USER PATH. KIND is advertise, ls-refs, fetch or other; USER is - if none.
//		The condition asked looks for one.
//	web start [-https] [-auth USER:PASSWORD] [-git SERVER] [NAME] DIR
//		serves the files of DIR as they are at each moment; sets $NAME (web by
//		default), $NAME_host and $NAME_ca. With -git also the repositories of a git
//		server, as servers with an API do.
//	web status CODE|normal [NAME]
//		answers everything with an HTTP status, or rightly again. What is POSTed to
//		it, it keeps for the condition posted.
//	port VARIABLE…
//		sets each to HOST:PORT, an address where nothing else listens: for LISTEN.
//
// # Git
//
//	repo [-branch BRANCH] NAME
//		makes an empty repository: $repos/NAME.git, with a work tree $repos/NAME.
//		Its default branch is master.
//	commit NAME DIR SUBJECT [PARAGRAPH…]
//		makes the files of DIR the whole content, commits and pushes to the
//		branch that is checked out. Sets $rev and $NAME (its hash; - becomes _),
//		$short (7 digits). A file that starts with #! is executable.
//	git [-at TIME] NAME ARG…
//		runs git in the work tree, sets the same variables from HEAD. Author and
//		dates are fixed, one minute a step from 2026-01-01; -at (RFC 3339) sets
//		another date. Remember to push: `git site push origin v1`.
//
// # kubesync
//
//	config NAME=VALUE… · config NAME…
//		sets, or unsets, variables of the environment that kubesync is started
//		in. From the start there are PATH, HOME, TMPDIR, KUBECONFIG (as in the
//		script), INTERVAL=1s, LISTEN=off and PROBE_LISTEN=off.
//	expand FILE…
//		replaces ${name} by the script's variables in files, for CONFIG lists.
//	kubesync start [NAME] [VARIABLE=VALUE…]
//		starts a daemon in the background; NAME is "daemon" by default.
//	kubesync stop [NAME]
//		SIGTERM; it has to end with status 0 within 15 seconds.
//	kubesync kill|term|hup|freeze|thaw [NAME]
//		sends SIGKILL (and waits), SIGTERM, SIGHUP, SIGSTOP, SIGCONT.
//	kubesync wait [-status N] [NAME]
//		waits for its end, with an exit status of N (0).
//	kubesync once [-status N] [VARIABLE=VALUE…]
//	kubesync dryrun [-status N] [VARIABLE=VALUE…]
//	kubesync run [-status N] [ARG…]
//		runs it with ONCE=1, with DRYRUN=1 and ONCE=1, or with arguments, and
//		expects the exit status N (0). Then stdout and stderr look at its output.
//	mark
//		lets log, synced, partial, failed and audit see only what comes after.
//
// A daemon that ends by itself fails the scenario, unless it is waited for; so
// does one that does not stop cleanly at the end of the script, and whose log
// holds a panic or a data race.
//
// # Conditions
//
// A condition is a command that looks once; ! before it turns it around, also
// after eventually and stays. If a cluster does not answer, that is no answer:
// neither holds.
//
//	eventually [-t DURATION] [!] CONDITION
//		waits until it holds, 60 s at most. Use it for all that takes time.
//	stays [-t DURATION] [!] CONDITION
//		it holds now and for 3 s.
//
//	has [-n NAMESPACE] KIND/NAME…        all of them exist
//	gone [-n NAMESPACE] KIND/NAME…       none of them exists
//	is [-n NAMESPACE] [-match] KIND/NAME PATH VALUE
//		the field at PATH (JSONPath, as kubectl's: .spec.replicas) has the value,
//		or matches the pattern VALUE. A missing field is empty.
//	count [-n NAMESPACE] [-l SELECTOR] KIND N
//		so many exist, in all namespaces without -n.
//	synced|partial [-d DAEMON] REPO [PATTERN]
//		the last sync that the daemon logged for REPO was of the revision checked
//		out in REPO's work tree and brought all of it, or not all, into the
//		cluster; the line matches PATTERN. After eventually it need not be the last
//		one any more, if it came after the last command that changed something:
//		another sync may follow it at once.
//	failed [-d DAEMON] REPO [PATTERN]
//		the last line about REPO says that it could not be synced.
//	log [-d DAEMON] PATTERN
//		a line matches. Lines read `LEVEL MESSAGE key=value …` here, with keys in
//		the order of the alphabet, lists one item a line, and a dot that matches
//		line ends too, whatever the log's format.
//		Sets stdout to the first that does.
//	audit [-except PATTERN] PATTERN
//		the API server was asked: VERB RESOURCE NAMESPACE/NAME USER as=USER
//		STATUS USERAGENT (with cluster -audit; as= names who was impersonated;
//		the verb of a server-side dry run is dryrun-patch and so on).
//		Sets stdout to all that do. Watches are logged when they end.
//	asked [-s NAME] PATTERN
//		a git server was asked since its last reset: the lines of gitserver log,
//		and those of requests that are under way, with - for the STATUS.
//	posted [-s NAME] PATTERN
//		a web server was sent METHOD PATH STATUS BODY by POST. Sets stdout to the
//		first that matches.
//	http [-s STATUS] [-i] [-H 'NAME: VALUE']… [-sign SECRET] [-unix SOCKET] [-ca FILE]
//	     METHOD URL [FILE] [=~ PATTERN]
//		a server answers with the status (200) and a body that matches; FILE is
//		the body that is sent. -i puts the answer's headers, in the order of the
//		alphabet, before its body; -sign sends X-Hub-Signature-256. Redirects are
//		not followed; an answer that does not end is listened to for 5 s. Sets
//		stdout. All answers are searched for secrets.
//	let [-n NAMESPACE] VARIABLE KIND/NAME PATH
//		no condition: sets $VARIABLE to the field's value, to compare it later. A
//		resourceVersion that stays tells that no one wrote the object.
//	kubectl ARG… [=~ PATTERN]
//		it succeeds and its output matches. Sets stdout and stderr. By itself it
//		is the way to change things: kubectl annotate cm/a x=y.
//	exec PROGRAM ARG… [=~ PATTERN]       the same (after eventually and stays)
//	output FILE PATTERN                  a file exists and matches
//
// # Secrets
//
//	secret VALUE…
//		registers values that must not appear anywhere. Registered by themselves are
//		the passwords of gitserver and web, those in variables that config sets, the
//		content of the files that variables such as REPOCREDS_FILE name, the tokens
//		and keys of kubeconfigs, and what stands in the Secrets of the story's
//		manifests. At the end of each scenario they are searched for, in many
//		encodings: in all output of kubesync and all answers of its servers, in the
//		ConfigMaps, Events, annotations and Leases of its clusters, in temporary
//		files, and in the arguments and environments of whatever it has started.
//	secret-scan
//		does that now.
//
// # Time
//
// Scenarios run in parallel, four on two cores; waiting is cheap, a cluster costs
// three seconds of CPU time. The first run builds the control plane, which takes
// minutes: `make test` does that first and passes -timeout 30m, while go test by
// itself gives a package ten minutes. With -race, kubesync is built with -race
// too, and its environment has GORACE, lest each run end with a second of waiting.
package test
