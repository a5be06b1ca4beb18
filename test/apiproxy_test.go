package test

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/kubesync/kubesync/test/lab/apiproxy"
)

// errProxyUsage says what can be done with a proxy.
var errProxyUsage = errors.New("want apiproxy start|relay|down|up|cut|readable|normal|silence [NAME], fail|deny CODE PATTERN [NAME], " +
	"answer CODE TYPE FILE PATTERN [NAME], hold|mute PATTERN [NAME] or say FILE PATTERN [NAME]")

// apiProxy starts proxies to the cluster's API server, and has them misbehave.
func (s *scenario) apiProxy(args []string) error {
	if len(args) == 0 {
		return errProxyUsage
	}
	verb, args := args[0], args[1:]
	takes := map[string]int{"fail": 2, "deny": 2, "answer": 4, "hold": 1, "mute": 1, "say": 2}[verb] // arguments besides the name
	if len(args) < takes {
		return errProxyUsage
	}
	name, err := nameOr(args[takes:], map[bool]string{true: "relay", false: "proxy"}[verb == "relay" || verb == "silence"])
	if err != nil {
		return err
	}
	switch verb {
	case "start":
		return s.startAPIProxy(name)
	case "relay":
		return s.startAPIRelay(name)
	case "silence":
		if s.relays[name] == nil {
			return fmt.Errorf("there is no API relay %q", name)
		}
		s.relays[name].Silence()
		return nil
	}
	p := s.proxies[name]
	if p == nil {
		return fmt.Errorf("there is no API proxy %q", name)
	}
	if takes > 0 {
		pattern, err := regexp.Compile(args[takes-1])
		if err != nil {
			return err
		}
		return s.misguide(p, verb, args[:takes-1], pattern)
	}
	switch verb {
	case "down":
		p.Down()
		return nil
	case "up":
		return p.Up()
	case "cut":
		return p.Cut()
	case "readable":
		p.Readable()
		return nil
	case "normal":
		p.Normal()
		return nil
	}
	return errProxyUsage
}

// misguide has a proxy misbehave towards the requests that match.
func (s *scenario) misguide(p *apiproxy.Proxy, verb string, args []string, pattern *regexp.Regexp) error {
	fault := apiproxy.Fault{Pattern: pattern}
	var err error
	switch verb {
	case "mute":
		p.Mute(pattern)
		return nil
	case "say":
		for deadline := time.Now().Add(time.Minute); p.Say(pattern, []byte(s.ts.ReadFile(args[0]))) == 0; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				return errors.New("no open watch matches")
			}
		}
		return nil
	case "answer":
		fault.ContentType, fault.Answer = args[1], []byte(s.ts.ReadFile(args[2]))
	}
	fault.Done = verb == "deny"
	if verb != "hold" {
		if fault.Status, err = strconv.Atoi(args[0]); err != nil {
			return err
		}
	}
	p.Fail(fault)
	return nil
}

func (s *scenario) startAPIRelay(name string) error {
	c, err := s.theCluster()
	if err != nil {
		return err
	}
	r, err := apiproxy.LaunchRelay(c.URL())
	if err != nil {
		return err
	}
	s.relays[name] = r
	path := filepath.Join(s.work, "."+name+".kubeconfig")
	s.set(name, path)
	return r.Kubeconfig(c.Kubeconfig(), path)
}

func (s *scenario) startAPIProxy(name string) error {
	c, err := s.theCluster()
	if err != nil {
		return err
	}
	p, err := apiproxy.Launch(c.Config())
	if err != nil {
		return err
	}
	s.proxies[name] = p
	path := filepath.Join(s.work, "."+name+".kubeconfig")
	s.set(name, path)
	return p.Kubeconfig(path)
}
