// objgen writes Kubernetes objects in both encodings of the real libraries, so that the decoders in
// src/kube can be compared with them: NAME.json and NAME.pb for each object, and lists on request.
//
//	objgen fixtures DIR
//	objgen pods N FILE       a protobuf PodList of N realistic running pods
//	objgen nodes N FILE      a protobuf NodeList
//	objgen random SEED N DIR N random objects of each kind in both encodings
//	objgen decode RUNS FILE  read a list with the decoder client-go uses, and say how long it took
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

func protobufOf(obj runtime.Object) []byte {
	var b bytes.Buffer
	if err := protobuf.NewSerializer(nil, nil).Encode(obj, &b); err != nil {
		log.Fatal(err)
	}
	return b.Bytes()
}

func write(path string, b []byte) {
	if err := os.WriteFile(path, b, 0o644); err != nil {
		log.Fatal(err)
	}
}

// frame is one event of a protobuf watch: length, WatchEvent, and inside it the enveloped object.
func frame(kind string, obj runtime.Object) []byte {
	ev := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: protobufOf(obj)}}
	raw, err := ev.Marshal()
	if err != nil {
		log.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...)
}

func line(kind string, obj runtime.Object) []byte {
	raw, err := json.Marshal(obj)
	if err != nil {
		log.Fatal(err)
	}
	b, err := json.Marshal(metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: raw}})
	if err != nil {
		log.Fatal(err)
	}
	return append(b, '\n')
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		log.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// decode takes the best of some runs, in CPU time of the whole process (the collector's included) and on
// the clock.
func decode(runs int, path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		log.Fatal(err)
	}
	s := protobuf.NewSerializer(scheme, scheme)
	bestCPU, bestWall, n := time.Hour, time.Hour, 0
	for i := 0; i < runs; i++ {
		goruntime.GC()
		c, t := cpu(), time.Now()
		obj, _, err := s.Decode(b, nil, nil)
		if err != nil {
			log.Fatal(err)
		}
		bestWall = min(bestWall, time.Since(t))
		bestCPU = min(bestCPU, cpu()-c)
		n = meta.LenList(obj)
	}
	fmt.Printf("client-go %s: %d objects, %.1f MB: %.3f s CPU (%.2f us each), %.3f s on the clock\n", path, n,
		float64(len(b))/1e6, bestCPU.Seconds(), bestCPU.Seconds()*1e6/float64(n), bestWall.Seconds())
}

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: objgen fixtures DIR | pods N FILE | nodes N FILE | random SEED N DIR | decode RUNS FILE")
	}
	switch os.Args[1] {
	case "fixtures":
		dir := os.Args[2]
		for _, f := range fixtures() {
			j, err := json.MarshalIndent(f.obj, "", " ")
			if err != nil {
				log.Fatal(err)
			}
			write(filepath.Join(dir, f.name+".json"), append(j, '\n'))
			write(filepath.Join(dir, f.name+".pb"), protobufOf(f.obj))
		}
		var pb, js []byte
		for _, e := range events() {
			pb = append(pb, frame(e.kind, e.obj)...)
			js = append(js, line(e.kind, e.obj)...)
		}
		write(filepath.Join(dir, "events.watch.pb"), pb)
		write(filepath.Join(dir, "events.watch.json"), js)
	case "pods", "nodes":
		n, err := strconv.Atoi(os.Args[2])
		if err != nil || len(os.Args) < 4 {
			log.Fatal("usage: objgen pods N FILE")
		}
		var obj runtime.Object
		if os.Args[1] == "pods" {
			obj = podList(n)
		} else {
			obj = nodeList(n)
		}
		b := protobufOf(obj)
		write(os.Args[3], b)
		fmt.Printf("%s: %d objects, %d bytes\n", os.Args[3], n, len(b))
	case "random":
		if len(os.Args) < 5 {
			log.Fatal("usage: objgen random SEED N DIR")
		}
		seed, err := strconv.ParseInt(os.Args[2], 10, 64)
		if err != nil {
			log.Fatal(err)
		}
		n, err := strconv.Atoi(os.Args[3])
		if err != nil {
			log.Fatal(err)
		}
		random(seed, n, os.Args[4])
	case "decode":
		runs, err := strconv.Atoi(os.Args[2])
		if err != nil || len(os.Args) < 4 {
			log.Fatal("usage: objgen decode RUNS FILE")
		}
		decode(runs, os.Args[3])
	default:
		log.Fatalf("unknown command %q", os.Args[1])
	}
}
