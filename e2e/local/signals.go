package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// errAsked is the cause of a stop that somebody asked for.
var errAsked = errors.New("asked to stop")

// parentCheck is how often the program looks whether who started it still lives.
const parentCheck = time.Second

// signals are two contexts: stop ends at the first Ctrl-C (or SIGTERM, or when the terminal or who
// started the program has gone), hard at the second.
func signals() (stop, hard context.Context) {
	stop, stopNow := context.WithCancelCause(context.Background())
	hard, hardNow := context.WithCancel(context.Background())
	asked := make(chan os.Signal, 2)
	signal.Notify(asked, syscall.SIGINT, syscall.SIGTERM)
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, syscall.SIGHUP, syscall.SIGPIPE)
	go func() {
		<-asked
		stopNow(errAsked)
		<-asked
		hardNow()
	}()
	go func() {
		select {
		case <-gone:
		case <-orphaned():
		}
		stopNow(errAsked)
	}()
	return stop, hard
}

// orphaned is closed when the process that started this one has ended: `go run` passes SIGTERM to nobody.
func orphaned() <-chan struct{} {
	parent, gone := os.Getppid(), make(chan struct{})
	go func() {
		for range time.Tick(parentCheck) {
			if os.Getppid() != parent {
				close(gone)
				return
			}
		}
	}()
	return gone
}
