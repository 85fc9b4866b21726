// Command apiserver runs Kubernetes' own API server, with its store, on loopback, and asks it what it thinks of objects.
//
// It is built from the Go modules that Kubernetes and etcd are released as, in a module of its own, as that takes minutes.
// For each object that it reads as JSON from standard input it writes one Answer as JSON to standard output: what a dry
// run of creating it says, warnings included, in a namespace that enforces the restricted Pod Security profile. Custom
// resource definitions, from the folder in its first argument, are there before the first object.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Answer to one object: nothing, where it would be taken as it is.
type Answer struct{ Problems []string }

// startTime bounds the start.
const startTime = 3 * time.Minute

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return errors.New("usage: apiserver FOLDER-OF-CUSTOM-RESOURCE-DEFINITIONS")
	}
	dir, err := os.MkdirTemp("", "apiserver-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := start(ctx, dir)
	if err != nil {
		return err
	}
	starting, started := context.WithTimeout(ctx, startTime)
	defer started()
	if err := s.prepare(starting, os.Args[1]); err != nil {
		return err
	}
	return s.answer(ctx)
}

// answer objects until there are no more.
func (s *server) answer(ctx context.Context) error {
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	for {
		var object map[string]any
		if err := in.Decode(&object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read an object: %w", err)
		}
		if err := out.Encode(Answer{s.try(ctx, object)}); err != nil {
			return fmt.Errorf("write an answer: %w", err)
		}
	}
}
