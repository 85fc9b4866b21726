package chaos_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"retry-worker/internal/testkit"
)

// relay stands between a worker and a gateway. It passes on every call for which pass returns no error, and answers the others by
// that error. Messages are passed on as they are, what goes with them is not.
func relay(t *testing.T, gateway string, pass func(ctx context.Context, method string, request []byte) error) (address string) {
	t.Helper()
	conn, err := grpc.NewClient(gateway, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{})))
	testkit.Must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	server := grpc.NewServer(grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(func(_ any, in grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(in)
		var message []byte
		if err := in.RecvMsg(&message); err != nil {
			return err
		}
		if err := pass(in.Context(), method, message); err != nil {
			return err
		}
		out, err := conn.NewStream(in.Context(), &grpc.StreamDesc{ServerStreams: true}, method)
		if err == nil {
			err = out.SendMsg(&message)
		}
		for err == nil {
			if err = out.RecvMsg(&message); err == nil {
				err = in.SendMsg(&message)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}))
	go func() { _ = server.Serve(listener) }() // ends by Stop
	t.Cleanup(func() {
		server.Stop()
		_ = conn.Close()
	})
	return listener.Addr().String()
}

// raw is a codec of messages that nobody reads.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (raw) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = bytes.Clone(data)
	return nil
}

func (raw) Name() string { return "proto" }
