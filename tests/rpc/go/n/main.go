// Fluxnetes' dialect of the same service; a program of its own, since both have the same names.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "sluice.sh/proto/fluxnetes/fluxion"
)

func main() {
	conn, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	client := pb.NewFluxionServiceClient(conn)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, count := range []int32{3, 30} {
		r, err := client.Match(ctx, &pb.MatchRequest{Podspec: &pb.PodSpec{Id: "a", Cpu: 2}, Count: count, JobName: "a"})
		fmt.Println("match", r.GetFluxID(), r.GetAllocated(), r.GetReserved(), len(r.GetNodelist()), err)
	}
	r, err := client.Match(ctx, &pb.MatchRequest{Podspec: &pb.PodSpec{Id: "b", Cpu: 4}, Count: 1, Reserve: true, JobName: "b"})
	fmt.Println("reserve", r.GetFluxID(), r.GetAllocated(), r.GetReserved(), r.GetReservedAt(), err)
	for _, ok := range []bool{true, false, true} {
		r, err := client.Cancel(ctx, &pb.CancelRequest{FluxID: 1, NoExistOK: ok})
		fmt.Println("cancel", r.GetFluxID(), r.GetError(), status.Convert(err).Message())
	}
}
