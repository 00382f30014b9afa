package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/log"
)

// runKwok is kwok's controller for pods and nodes with the flags of kwok that we use, on a client
// that resumes its watches (resume.go).
func runKwok() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := simulate(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "kwok:", err)
		return 1
	}
	return 0
}

func simulate(ctx context.Context) error {
	flags := pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "the way to the API server")
	selector := flags.String("manage-nodes-with-label-selector", "", "the nodes to simulate")
	cidr := flags.String("cidr", "10.0.0.0/8", "addresses of pods")
	nodeIP := flags.String("node-ip", "127.0.0.1", "address of the nodes")
	lease := flags.Uint("node-lease-duration-seconds", 0, "keep node leases of this length; 0 keeps none")
	version := flags.Bool("version", false, "print the version")
	// These two take --v and --config, and read the stages.
	ctx, _ = log.InitFlags(ctx, flags)
	ctx, err := config.InitFlags(ctx, flags)
	if err != nil {
		return err
	}
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}
	if *version {
		fmt.Println("kwok version v0.8.0")
		return nil
	}

	stages := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, s := range config.FilterWithTypeFromContext[*internalversion.Stage](ctx) {
		stages[s.Spec.ResourceRef] = append(stages[s.Spec.ResourceRef], s)
	}
	if len(stages) == 0 {
		return fmt.Errorf("no stages: name a file with --config")
	}

	restConfig, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	restConfig.QPS = -1
	restConfig.UserAgent = "kwok"
	restConfig.ContentType = "application/vnd.kubernetes.protobuf"
	restConfig.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return err
	}

	options := config.GetKwokConfiguration(ctx).Options
	controller, err := controllers.NewController(controllers.Config{
		Clock:                        clock.RealClock{},
		TypedClient:                  newResumingClient(client),
		ManageNodesWithLabelSelector: *selector,
		CIDR:                         *cidr,
		NodeIP:                       *nodeIP,
		LocalStages:                  stages,
		PodPlayStageParallelism:      options.PodPlayStageParallelism,
		NodePlayStageParallelism:     options.NodePlayStageParallelism,
		NodeLeaseDurationSeconds:     *lease,
		NodeLeaseParallelism:         options.NodeLeaseParallelism,
		PodsOnNodeSyncParallelism:    options.PodsOnNodeSyncParallelism,
		ID:                           "kwok",
	})
	if err != nil {
		return err
	}
	if err := controller.Start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
