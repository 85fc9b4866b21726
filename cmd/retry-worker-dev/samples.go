package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/api"
	"retry-worker/internal/config"
	"retry-worker/internal/demo"
	"retry-worker/internal/smallfile"
	"retry-worker/internal/zeebe"
)

// runSamples plays the samples on the engine that the environment names, until they have ended or ctx has.
func (o *options) runSamples(ctx context.Context, out io.Writer) error {
	client, err := o.client()
	if err != nil {
		return err
	}
	settings, err := config.Load(config.OfEngine...)
	if err != nil {
		return err
	}
	engine := settings.Engine
	engine.Version = "dev"
	engine.PlainErrors = true // as a hospital's own worker throws them
	c, err := zeebe.Dial(engine, zap.NewNop())
	if err != nil {
		return err
	}
	defer c.Close()
	d := demo.Options{Engine: c, Out: out, Ask: client.Ask, Run: time.Now().Unix() % 1_000_000}
	if o.clockURL != "" {
		d.Clock = &demo.EngineClock{ActuatorURL: o.clockURL}
	}
	return demo.Run(ctx, d)
}

// client returns one of the worker's API, as the flags say.
func (o *options) client() (*api.Client, error) {
	u, err := url.Parse(o.apiURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, usageError("--api-url is no URL of a console (not shown), expected such as http://127.0.0.1:8095 or https://…")
	}
	settings, err := config.Load("RETRY_WORKER_TOKEN")
	if err != nil {
		return nil, err
	}
	token := settings.Token
	if o.tokenFile != "" {
		const most = 4096 // as long as a token can be
		content, err := smallfile.ReadSecret(o.tokenFile, most)
		if err != nil {
			return nil, fmt.Errorf("--token-file %s cannot be read: %w; name a readable file with a token in it", o.tokenFile, err)
		}
		token = strings.TrimSpace(string(content))
	}
	return newClient(strings.TrimSuffix(o.apiURL, "/"), token), nil
}

// newClient asks a worker, through no proxy.
func newClient(base, token string) *api.Client {
	const askTime = 10 * time.Second
	return &api.Client{Base: base, Flag: "api-url", Token: token, TokenFrom: "RETRY_WORKER_TOKEN or --token-file",
		Client: http.Client{Timeout: askTime, Transport: &http.Transport{}}}
}
