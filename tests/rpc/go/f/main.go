// Fluxion's dialect, as its Go client behaves: a dial that blocks until the server is up, a deadline of a
// second for every call, a new connection per call.  Then Fluence's service.
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

	cli "sluice.sh/proto/fluxcli"
	pb "sluice.sh/proto/fluxion"
)

func dial(address string) *grpc.ClientConn {
	conn, err := grpc.Dial(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithBlock())
	if err != nil {
		log.Fatal(err)
	}
	return conn
}

func call(address string, do func(context.Context, *grpc.ClientConn)) {
	conn := dial(address)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	do(ctx, conn)
}

func main() {
	address, jgf, jobspec := os.Args[1], read(os.Args[2]), read(os.Args[3])
	call(address, func(ctx context.Context, c *grpc.ClientConn) {
		r, err := pb.NewFluxionServiceClient(c).Init(ctx, &pb.InitRequest{Policy: "lonode", Jgf: jgf})
		fmt.Println("init", r.GetStatus(), err)
	})
	for i := 0; i < 3; i++ {
		call(address, func(ctx context.Context, c *grpc.ClientConn) {
			r, err := pb.NewFluxionServiceClient(c).Match(ctx, &pb.MatchRequest{Jobspec: jobspec, Request: "allocate"})
			fmt.Println("match", r.GetJobid(), r.GetReserved(), r.GetAt(), len(r.GetAllocation()) > 0, said(err))
		})
	}
	call(address, func(ctx context.Context, c *grpc.ClientConn) {
		r, err := pb.NewFluxionServiceClient(c).Match(ctx, &pb.MatchRequest{Jobspec: jobspec, Request: "allocate", Reservation: true})
		fmt.Println("reserve", r.GetJobid(), r.GetReserved(), r.GetAt(), said(err))
	})
	for _, id := range []int64{1, 2, 4, 77} {
		call(address, func(ctx context.Context, c *grpc.ClientConn) {
			r, err := pb.NewFluxionServiceClient(c).Cancel(ctx, &pb.CancelRequest{JobID: id})
			fmt.Println("cancel", r.GetStatus(), said(err))
		})
	}
	call(address, func(ctx context.Context, c *grpc.ClientConn) {
		r, err := cli.NewFluxcliServiceClient(c).Match(ctx, &cli.MatchRequest{Ps: &cli.PodSpec{Id: "team/a", Cpu: 2}, Request: "allocate", Count: 3})
		for _, n := range r.GetNodelist() {
			fmt.Println("node", n.NodeID, n.Tasks)
		}
		fmt.Println("fluxcli", r.GetPodID(), r.GetJobID(), said(err))
	})
}

func said(err error) string {
	if err == nil {
		return "ok"
	}
	s := status.Convert(err)
	return fmt.Sprintf("%s: %s", s.Code(), s.Message())
}

func read(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	return string(text)
}
