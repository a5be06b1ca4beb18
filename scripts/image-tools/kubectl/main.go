// Command kubectl is kubectl, built from the module that holds it.
//
// It is what k8s.io/kubernetes/cmd/kubectl does, without the rest of that
// module: the image needs kubectl for transform commands only.
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // exec and OIDC users in kubeconfigs
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	command := cmd.NewDefaultKubectlCommand()
	if err := cli.RunNoErrOutput(command); err != nil {
		util.CheckErr(err)
	}
	os.Exit(0)
}
