package test

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/kubesync/kubesync/test/apiproxy"
)

// apiProxy starts proxies to the cluster's API server, and has them misbehave.
func (s *scenario) apiProxy(args []string) error {
	if len(args) == 0 {
		return errors.New("want apiproxy start, down, up, cut, fail, hold or normal")
	}
	verb, args := args[0], args[1:]
	if verb == "start" {
		return s.startAPIProxy(args)
	}
	fault := apiproxy.Fault{}
	switch {
	case verb == "fail" && len(args) >= 2:
		code, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		if fault.Pattern, err = regexp.Compile(args[1]); err != nil {
			return err
		}
		fault.Status, args = code, args[2:]
	case verb == "hold" && len(args) >= 1:
		var err error
		if fault.Pattern, err = regexp.Compile(args[0]); err != nil {
			return err
		}
		args = args[1:]
	}
	name, err := nameOr(args, "proxy")
	if err != nil {
		return err
	}
	p := s.proxies[name]
	if p == nil {
		return fmt.Errorf("there is no API proxy %q", name)
	}
	switch {
	case verb == "down":
		p.Down()
		return nil
	case verb == "up":
		return p.Up()
	case verb == "cut":
		return p.Cut()
	case verb == "normal":
		p.Normal()
		return nil
	case fault.Pattern != nil:
		p.Fail(fault)
		return nil
	}
	return errors.New("want apiproxy start, down, up, cut, fail CODE PATTERN, hold PATTERN or normal")
}

func (s *scenario) startAPIProxy(args []string) error {
	name, err := nameOr(args, "proxy")
	if err != nil {
		return err
	}
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
