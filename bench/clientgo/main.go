// clientgo binds pods with client-go, as the reference for bench-bind: same server, same pods, same
// number of requests in flight, no rate limit, protobuf as kube-scheduler uses it.
//
//	clientgo -kubeconfig FILE -namespace NS -prefix P -count N -workers 64 -node NAME
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "file")
	namespace := flag.String("namespace", "default", "of the pods")
	prefix := flag.String("prefix", "p-", "of the pods' names")
	count := flag.Int("count", 1000, "pods")
	workers := flag.Int("workers", 64, "requests in flight")
	node := flag.String("node", "node-0", "where they go")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	pods := client.CoreV1().Pods(*namespace)
	// One request first: connecting is not what is measured.
	if _, err := pods.List(context.Background(), metav1.ListOptions{Limit: 1}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var next, failed atomic.Int64
	took := make([]time.Duration, *count)
	start, before := time.Now(), cpu()
	var group sync.WaitGroup
	for w := 0; w < *workers; w++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for {
				i := int(next.Add(1)) - 1
				if i >= *count {
					return
				}
				sent := time.Now()
				err := pods.Bind(context.Background(), &corev1.Binding{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s%d", *prefix, i), Namespace: *namespace},
					Target:     corev1.ObjectReference{Kind: "Node", Name: *node},
				}, metav1.CreateOptions{})
				took[i] = time.Since(sent)
				if err != nil {
					if failed.Add(1) == 1 {
						fmt.Fprintln(os.Stderr, err)
					}
				}
			}
		}()
	}
	group.Wait()
	seconds := time.Since(start).Seconds()
	used := cpu() - before
	sort.Slice(took, func(a, b int) bool { return took[a] < took[b] })
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{
		"client": "client-go", "count": *count, "inflight": *workers, "failed": failed.Load(),
		"seconds": seconds, "per_second": float64(*count) / seconds,
		"cpu_us_per_bind": float64(used.Microseconds()) / float64(*count),
		"p50_ms":          float64(took[len(took)/2].Microseconds()) / 1000,
		"p99_ms":          float64(took[len(took)*99/100].Microseconds()) / 1000,
	})
}
