package main

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// server opens one pretend watch after the other and notes from which version each was asked for.
type server struct {
	from  []string
	fake  *watch.FakeWatcher
	fails error
}

func (s *server) open(_ context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	s.from = append(s.from, opts.ResourceVersion)
	if s.fails != nil {
		return nil, s.fails
	}
	s.fake = watch.NewFakeWithChanSize(8, false)
	return s.fake, nil
}

// begin opens a watch as kwok does, always from the beginning.
func begin(t *testing.T, p *position, s *server) watch.Interface {
	t.Helper()
	w, err := p.watch(context.Background(), metav1.ListOptions{ResourceVersion: "0"}, s.open)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// pass sends events and takes them at the other end.
func pass(s *server, w watch.Interface, events ...watch.Event) {
	for _, e := range events {
		s.fake.Action(e.Type, e.Object)
		<-w.ResultChan()
	}
}

func event(kind watch.EventType, version string) watch.Event {
	return watch.Event{Type: kind, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}}
}

func expect(t *testing.T, s *server, version string) {
	t.Helper()
	if got := s.from[len(s.from)-1]; got != version {
		t.Fatalf("watched from %q, not from %q", got, version)
	}
}

// ended gives a position that has seen version 7 and whose watch is over.
func ended(t *testing.T, s *server) *position {
	p := &position{}
	w := begin(t, p, s)
	expect(t, s, "0")
	pass(s, w, event(watch.Added, "9"), event(watch.Added, "3"), event(watch.Modified, "7"))
	w.Stop()
	return p
}

func TestGoesOnWhereItStopped(t *testing.T) {
	s := &server{}
	p := ended(t, s)
	w := begin(t, p, s)
	expect(t, s, "7")
	pass(s, w, event(watch.Added, "8"), event(watch.Deleted, "12"))
	w.Stop()
	begin(t, p, s)
	expect(t, s, "12")
}

func TestCutOffBeforeAllWereSeen(t *testing.T) {
	s, p := &server{}, &position{}
	w := begin(t, p, s)
	pass(s, w, event(watch.Added, "9"))
	w.Stop()
	begin(t, p, s)
	expect(t, s, "0")
}

func TestTooOld(t *testing.T) {
	s := &server{}
	p := ended(t, s)
	pass(s, begin(t, p, s), watch.Event{Type: watch.Error, Object: &metav1.Status{}})
	begin(t, p, s)
	expect(t, s, "0")

	p = ended(t, s)
	s.fails = apierrors.NewResourceExpired("too old")
	if _, err := p.watch(context.Background(), metav1.ListOptions{ResourceVersion: "0"}, s.open); err == nil {
		t.Fatal("the failure is not told")
	}
	expect(t, s, "7")
	s.fails = nil
	begin(t, p, s)
	expect(t, s, "0")
}

func TestLostWrite(t *testing.T) {
	s := &server{}
	p := ended(t, s)
	w := begin(t, p, s)
	p.wrote(nil)
	p.wrote(apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "a", errors.New("changed")))
	pass(s, w, event(watch.Modified, "8"))
	p.wrote(errors.New("connection reset"))
	if _, more := <-w.ResultChan(); more {
		t.Fatal("the watch goes on")
	}
	w = begin(t, p, s)
	expect(t, s, "0")
	// Once all have been seen again, it goes on as ever.
	pass(s, w, event(watch.Added, "8"), event(watch.Modified, "20"))
	w.Stop()
	begin(t, p, s)
	expect(t, s, "20")
}

func TestWriteLostWhileOpening(t *testing.T) {
	s := &server{}
	p := ended(t, s)
	w, err := p.watch(context.Background(), metav1.ListOptions{ResourceVersion: "0"},
		func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			p.wrote(errors.New("connection reset"))
			return s.open(ctx, opts)
		})
	if err != nil {
		t.Fatal(err)
	}
	if _, more := <-w.ResultChan(); more {
		t.Fatal("a watch that does not show all objects goes on")
	}
	begin(t, p, s)
	expect(t, s, "0")
}

func TestAnotherVersionIsLeftAlone(t *testing.T) {
	s := &server{}
	p := ended(t, s)
	if _, err := p.watch(context.Background(), metav1.ListOptions{ResourceVersion: "5"}, s.open); err != nil {
		t.Fatal(err)
	}
	expect(t, s, "5")
}
