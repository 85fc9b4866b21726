package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"retry-worker/internal/config"
	"retry-worker/internal/demo"
	"retry-worker/internal/zeebe"
)

func (c *cli) demoCommand() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Start sample claims and play the portal and the people around the worker",
		Long: "Starts seventy samples of the four bundled processes and plays the outside systems that fail (TISS portal,\n" +
			"Evolution API, jobs, a job queue), and the people who decide on dead letters, through the worker's API. Run it\n" +
			"beside `retry-worker serve`, on an engine for trying things out: it takes the outside systems' jobs there.\n" +
			"Where the API wants a token, an admin's in RETRY_WORKER_TOKEN or --token-file is shown.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.demo(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.apiURL, "api-url", "",
		"where the worker's API and console listen; left out: http:// and RETRY_WORKER_HTTP_ADDR")
	cmd.Flags().StringVar(&f.tokenFile, "token-file", "", "file that holds the token to show to the API")
	cmd.Flags().StringVar(&f.clockURL, "clock-url", "",
		"actuator of a broker with ZEEBE_CLOCK_CONTROLLED=true whose clock may be moved, such as http://127.0.0.1:9600")
	cmd.Flags().BoolVar(&f.stay, "stay", false, "leave some dead letters to you, and play on until Ctrl-C")
	cmd.Flags().StringVar(&f.workerLog, "worker-log", "",
		"file that the worker's log goes to: shows its decisions as they are made")
	return cmd
}

type demoFlags struct {
	apiURL, tokenFile, clockURL, workerLog string
	stay                                   bool
}

func (c *cli) demo(ctx context.Context, f demoFlags) error {
	server, err := (&serverFlags{name: "api-url", server: f.apiURL, tokenFile: f.tokenFile}).client()
	if err != nil {
		return err
	}
	options, _, err := config.LoadEngine()
	if err != nil {
		return &usageError{err}
	}
	options.UserAgent = zeebe.UserAgent(version)
	options.PlainErrors = true // as a hospital's own worker throws them
	client, err := zeebe.Dial(options, zap.NewNop())
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := untilSignal(ctx)
	defer cancel()
	o := demo.Options{
		Engine: client, Out: c.out, JSON: c.json(), WorkerLog: f.workerLog, Run: time.Now().Unix() % 1_000_000,
		Ask: server.Ask,
	}
	if f.stay {
		o.Invitation = "Open " + server.Base +
			"/dead-letters and choose one: read why it failed, retry it with a reason, and see here how the process goes on."
	}
	if f.clockURL != "" {
		o.Clock = demo.EngineClock{ActuatorURL: f.clockURL}
	}
	if err := demo.Run(ctx, o); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
