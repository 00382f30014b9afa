package main

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// kwok begins every watch at resourceVersion 0, which gives it all objects again. A loaded API
// server ends watches often, and with thousands of pods going through all of them each time is
// what keeps the machine busy. Here a watch goes on where the last one stopped, unless a write was
// lost on the way to the server: then seeing all objects again is how kwok makes up for it.

// position is how far one kind has been read.
type position struct {
	mu   sync.Mutex
	last string          // resourceVersion of the last event; "" before the first
	lost int             // writes that failed without an answer
	made int             // how many of them a watch from the beginning has made up for
	open watch.Interface // the watch that runs
}

func (p *position) seen(obj runtime.Object) {
	if m, err := meta.CommonAccessor(obj); err == nil && m.GetResourceVersion() != "" {
		p.mu.Lock()
		p.last = m.GetResourceVersion()
		p.mu.Unlock()
	}
}

// wrote takes note of the result of a write. A lost one ends the watch; the next shows all objects.
func (p *position) wrote(err error) {
	var answer apierrors.APIStatus
	if err == nil || errors.As(err, &answer) {
		return
	}
	p.mu.Lock()
	p.lost++
	w := p.open
	p.open = nil
	p.mu.Unlock()
	if w != nil {
		w.Stop()
	}
}

// watch opens a watch where the last one stopped, or at the beginning.
func (p *position) watch(ctx context.Context, opts metav1.ListOptions, open opener) (watch.Interface, error) {
	p.mu.Lock()
	lost := p.lost
	all := p.last == "" || lost != p.made
	if opts.ResourceVersion == "0" && !all {
		opts.ResourceVersion = p.last
	}
	p.mu.Unlock()

	w, err := open(ctx, opts)
	if err != nil {
		if apierrors.IsGone(err) || apierrors.IsResourceExpired(err) {
			p.forget()
		}
		return nil, err
	}
	// A watch from the beginning first adds all objects, in no order of versions. Only an event of
	// another kind says that they have all been seen; until then there is no version to go on from.
	w = watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		switch {
		case e.Type == watch.Error:
			p.forget() // too old, or worse: begin anew
		case !all:
			p.seen(e.Object)
		case e.Type != watch.Added:
			all = false
			p.mu.Lock()
			p.made = lost
			p.mu.Unlock()
			p.seen(e.Object)
		}
		return e, true
	})
	p.mu.Lock()
	late := p.lost != lost // a write was lost while this one was opened: it does not make up for that
	if !late {
		p.open = w
	}
	p.mu.Unlock()
	if late {
		w.Stop()
	}
	return w, nil
}

func (p *position) forget() {
	p.mu.Lock()
	p.last = ""
	p.mu.Unlock()
}

type opener func(context.Context, metav1.ListOptions) (watch.Interface, error)

type resumingClient struct {
	kubernetes.Interface
	pods, nodes *position
}

func newResumingClient(c kubernetes.Interface) kubernetes.Interface {
	return resumingClient{c, &position{}, &position{}}
}

func (c resumingClient) CoreV1() corev1client.CoreV1Interface {
	return resumingCore{c.Interface.CoreV1(), c}
}

type resumingCore struct {
	corev1client.CoreV1Interface
	c resumingClient
}

func (r resumingCore) Pods(namespace string) corev1client.PodInterface {
	return resumingPods{r.CoreV1Interface.Pods(namespace), r.c.pods}
}

func (r resumingCore) Nodes() corev1client.NodeInterface {
	return resumingNodes{r.CoreV1Interface.Nodes(), r.c.nodes}
}

type resumingPods struct {
	corev1client.PodInterface
	at *position
}

func (p resumingPods) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return p.at.watch(ctx, opts, p.PodInterface.Watch)
}

func (p resumingPods) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*corev1.Pod, error) {
	result, err := p.PodInterface.Patch(ctx, name, pt, data, opts, subresources...)
	p.at.wrote(err)
	return result, err
}

func (p resumingPods) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	err := p.PodInterface.Delete(ctx, name, opts)
	p.at.wrote(err)
	return err
}

type resumingNodes struct {
	corev1client.NodeInterface
	at *position
}

func (n resumingNodes) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return n.at.watch(ctx, opts, n.NodeInterface.Watch)
}

func (n resumingNodes) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*corev1.Node, error) {
	result, err := n.NodeInterface.Patch(ctx, name, pt, data, opts, subresources...)
	n.at.wrote(err)
	return result, err
}
