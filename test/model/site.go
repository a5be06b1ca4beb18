package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/client-go/dynamic"

	testlab "github.com/kubesync/kubesync/test/lab"
	"github.com/kubesync/kubesync/test/lab/cluster"
)

// site is what walks share: a control plane, the program, and a temporary directory.
type site struct {
	*testlab.Lab
	cluster *cluster.Cluster
	dynamic dynamic.Interface
}

// newSite starts the control plane, with its controllers: without them no Namespace is
// ever gone.
func newSite(ctx context.Context, program string, out io.Writer) (_ *site, err error) {
	s := &site{}
	if s.Lab, err = testlab.Open("model", program, out); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.cluster, err = s.Cluster(ctx, cluster.WithControllers); err != nil {
		return nil, err
	}
	if s.dynamic, err = dynamic.NewForConfig(s.cluster.Config()); err != nil {
		return nil, fmt.Errorf("client of the walks: %w", err)
	}
	return s, nil
}

// close ends what runs and removes every trace.
func (s *site) close() error {
	var err error
	if s.cluster != nil {
		err = s.cluster.Close()
	}
	return errors.Join(err, s.Close())
}
