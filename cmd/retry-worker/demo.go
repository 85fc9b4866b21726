package main

import (
	"context"
	"errors"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"retry-worker/internal/app"
	"retry-worker/internal/config"
	"retry-worker/internal/demo"
	"retry-worker/internal/zeebe"
)

func (c *cli) demoCommand() *cobra.Command {
	var clockURL, workerLog string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Start sample claims and play the portal and the people around the worker",
		Long: "Starts thirty sample claims and plays the portal that fails and the people who review. Run it beside\n" +
			"`retry-worker serve`, on an engine for trying things out: it takes the jobs of type submit-claim and\n" +
			"retry-review.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.demo(cmd.Context(), clockURL, workerLog) },
	}
	cmd.Flags().StringVar(&clockURL, "clock-url", "", "actuator of a broker with ZEEBE_CLOCK_CONTROLLED=true whose clock may be moved, such as http://127.0.0.1:9600")
	cmd.Flags().StringVar(&workerLog, "worker-log", "", "file that the worker's log goes to: shows its decisions as they are made")
	return cmd
}

func (c *cli) demo(ctx context.Context, clockURL, workerLog string) error {
	engine, _, err := config.LoadEngine()
	if err != nil {
		return &usageError{err}
	}
	options := app.EngineOptions(engine, version)
	options.PlainErrors = true // as a hospital's own worker throws them
	client, err := zeebe.Dial(options, zap.NewNop())
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	o := demo.Options{Engine: client, Out: c.out, JSON: c.json(), WorkerLog: workerLog, Run: time.Now().Unix() % 1_000_000}
	if clockURL != "" {
		o.Clock = &demo.Clock{ActuatorURL: clockURL}
	}
	if err := demo.Run(ctx, o); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
