package main

import (
	"context"
	"errors"
	"io"
)

func (o *options) runAll(ctx context.Context, out io.Writer) error     { return errors.New("only --engine-only so far") }
func (o *options) runSamples(ctx context.Context, out io.Writer) error { return errors.New("only --engine-only so far") }
