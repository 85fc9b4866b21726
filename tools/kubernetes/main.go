// Command kubernetes holds the programs of Kubernetes, and etcd, by their own names: its first argument.
//
// They are built from their released Go modules, which takes minutes, and so in a module of their own. go.mod lists
// containerd and Helm too, as tools. The script node starts them all.
package main

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var programs = map[string]func() *cobra.Command{
	"etcd":                    etcd,
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-proxy":              proxy.NewProxyCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
}

func main() {
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "usage: kubernetes PROGRAM [ARGUMENT...], a program being one of %q\n", slices.Sorted(maps.Keys(programs)))
		os.Exit(2)
	}
	os.Args = os.Args[1:] // kubectl reads them itself
	os.Exit(cli.Run(programs[os.Args[0]]()))
}

// etcd returns a command that keeps the API server's data in a folder, as long as it runs.
func etcd() *cobra.Command {
	return &cobra.Command{Use: "etcd FOLDER CLIENT-URL PEER-URL", Args: cobra.ExactArgs(3), RunE: func(_ *cobra.Command, args []string) error {
		client, err := url.Parse(args[1])
		if err != nil {
			return err
		}
		peer, err := url.Parse(args[2])
		if err != nil {
			return err
		}
		config := embed.NewConfig()
		config.Dir, config.LogLevel, config.UnsafeNoFsync = args[0], "error", true
		config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
		config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
		config.InitialCluster = config.InitialClusterFromName(config.Name)
		server, err := embed.StartEtcd(config)
		if err != nil {
			return err
		}
		return <-server.Err()
	}}
}
