package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"retry-worker/internal/demo"
)

// The test binary plays every program of a run: itself, Zeebe, Maven and the worker.
const (
	roleName = "LOCAL_TEST_ROLE"
	pidsName = "LOCAL_TEST_PIDS" // folder of one file for each role that runs or ran
	// trouble is "role:what", what being one of the words below.
	troubleName = "LOCAL_TEST_TROUBLE"

	hangs = "hangs" // never does its work, but ends when asked
	deaf  = "deaf"  // does its work, and does not end when asked
	fails = "fails" // ends at once
	dies  = "dies"  // does its work, and ends when there is a file "die" in the folder of pids

	// asked is the file of the roles that were asked to end, in their order.
	asked = "asked"

	enough = 30 * time.Second
)

func TestMain(m *testing.M) {
	role := os.Getenv(roleName)
	switch role {
	case "":
		os.Exit(m.Run())
	case "local":
		main()
	case "retry-worker":
		play(os.Args[1])
	default:
		play(role)
	}
}

// play is one of the programs that are started.
func play(role string) {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	trouble := ""
	if who, what, _ := strings.Cut(os.Getenv(troubleName), ":"); who == role {
		trouble = what
	}
	if trouble == deaf {
		ctx = context.Background()
		signal.Ignore(syscall.SIGTERM)
	}
	pid := filepath.Join(os.Getenv(pidsName), role)
	check(os.WriteFile(pid+".new", fmt.Append(nil, os.Getpid()), 0o600))
	check(os.Rename(pid+".new", pid))
	switch trouble {
	case hangs:
		<-ctx.Done()
		os.Exit(1)
	case fails:
		fmt.Println("10:00 INFO all is well")
		fmt.Fprintln(os.Stderr, "10:01 ERROR "+role+" - out of luck")
		fmt.Println("10:02 INFO bye")
		os.Exit(3)
	case dies:
		go func() {
			for !exists(filepath.Join(os.Getenv(pidsName), "die")) {
				time.Sleep(10 * time.Millisecond)
			}
			fmt.Fprintln(os.Stderr, "10:01 ERROR "+role+" - out of luck")
			os.Exit(3)
		}()
	}
	parts[role](ctx)
	if ctx.Err() != nil {
		said, err := os.OpenFile(filepath.Join(os.Getenv(pidsName), asked), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		check(err)
		_, err = said.WriteString(role + " ")
		check(err)
	}
}

var parts = map[string]func(ctx context.Context){
	"broker": func(ctx context.Context) {
		serve("127.0.0.1:"+os.Getenv("MANAGEMENT_SERVER_PORT"), "/actuator/health/readiness", `{"status":"UP"}`)
		serve("127.0.0.1:"+os.Getenv("SERVER_PORT"), "/v1/topology", `{"brokers":[{"partitions":[{"role":"leader","health":"healthy"}]}]}`)
		serve("127.0.0.1:"+os.Getenv("ZEEBE_BROKER_GATEWAY_NETWORK_PORT"), "/", "")
		<-ctx.Done()
	},
	"deploy": func(context.Context) { fmt.Println("SUB_06 version 1 deployed") },
	"serve": func(ctx context.Context) {
		serve(os.Getenv("RETRY_WORKER_OPS_ADDR"), "/readyz", "")
		fmt.Printf("{\"event\":\"serving\",\"engine\":%q,\"ops\":%q}\n", os.Getenv("ZEEBE_ADDRESS"), os.Getenv("RETRY_WORKER_OPS_ADDR"))
		<-ctx.Done()
	},
	"demo": func(ctx context.Context) {
		fmt.Printf("  CLM-1 decided (%s)\n", strings.Join(os.Args[2:], " "))
		if slices.Contains(os.Args, "--stay") {
			fmt.Println(demo.Staying)
			<-ctx.Done()
		}
	},
}

func serve(address, path, answer string) {
	l, err := net.Listen("tcp", address)
	check(err)
	mux := http.NewServeMux()
	mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) })
	go func() { _ = http.Serve(l, mux) }()
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "ERROR", err)
		os.Exit(4)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
