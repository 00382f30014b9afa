// Command control-plane is a Kubernetes control plane in one file: kube-apiserver,
// kube-controller-manager, kube-scheduler, etcd and kwok, compiled from their published modules.
//
// The program to be is named by the first argument, or by the name the file is started under, so
// that links called kube-apiserver, etcd and so on behave as the separate programs do. One binary
// compiles and links in less time than five, and five processes share its pages.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var programs = map[string]func() int{
	"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
	"etcd":                    func() int { etcdmain.Main(os.Args); return 0 },
	"kwok":                    runKwok,
}

func main() {
	name := filepath.Base(os.Args[0])
	if programs[name] == nil && len(os.Args) > 1 {
		name = os.Args[1]
		os.Args = os.Args[1:]
	}
	run := programs[name]
	if run == nil {
		fmt.Fprintln(os.Stderr, "usage: control-plane kube-apiserver|kube-controller-manager|kube-scheduler|etcd|kwok [flags]")
		os.Exit(2)
	}
	os.Exit(run())
}
