package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"retry-worker/internal/api"
	"retry-worker/internal/clock"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

const (
	// A run is looked at after firstLook, then less and less often, until it is every lastLook.
	firstLook, lastLook = 50 * time.Millisecond, time.Second
	// silence is how long the API may not answer before watching is given up.
	silence = time.Minute
)

// follow watches a run to its end and prints it; begun is how it was answered when it was started, if it was just now.
// Where ctx ends first, it says how to go on: the run does so by itself.
func (c *cli) follow(ctx context.Context, id string, begun seenRun) error {
	w := &watcher{c: c, bar: c.progress(""), seenRun: begun}
	err := w.watch(ctx, id)
	w.bar.end()
	run := w.run
	if ctx.Err() != nil {
		fmt.Fprintf(c.errOut, "retry-worker: no longer watched, the run goes on; `%s` ends it, `%s` watches it again\n",
			runsCommandLine("cancel", id), runsCommandLine("watch", id))
		err = nil
	}
	switch {
	case err != nil:
		return err
	case run == nil:
		return nil
	case c.json():
		fmt.Fprintf(c.out, "%s\n", w.text)
	case ctx.Err() == nil:
		fmt.Fprintf(c.out, "Bulk run %s is %s.\n", inertLine(run.ID, maxCell), inertLine(string(run.State), maxCell))
		c.printOutcomes(run)
	}
	if run.State == journal.BulkCancelled {
		return fmt.Errorf("the run was cancelled by %s: %d of %s were not decided", inertLine(value(run.ChangedBy), maxCell),
			run.Counts[journal.BulkPlanned], deadLetters(run.Total))
	}
	return nil
}

// seenRun is a run as it was seen last, and the API's words for it; nil where it was not.
type seenRun struct {
	run  *api.BulkRun
	text []byte
}

// watcher shows how far a run has come: in a bar on a terminal, otherwise in a line for each tenth and each change.
type watcher struct {
	seenRun
	c    *cli
	bar  *progressBar
	last string
}

// watch looks at a run until its end, or that of ctx, whose error it returns then.
func (w *watcher) watch(ctx context.Context, id string) error {
	heard := time.Now()
	for pause := firstLook; ; pause = min(pause*3/2, lastLook) {
		run, text, err := asked[api.BulkRun](ctx, w.c, "/bulk-runs/"+url.PathEscape(id), nil)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !mayPass(err):
			return err
		case err != nil && time.Since(heard) > silence:
			return fmt.Errorf("%w; the run goes on: `%s` watches it again", err, runsCommandLine("watch", id))
		case err == nil:
			w.seenRun, heard = seenRun{run, text}, time.Now()
			w.show(run)
			if run.State.Ended() {
				return nil
			}
		}
		clock.Machine{}.Rest(ctx, pause)
	}
}

func (w *watcher) show(r *api.BulkRun) {
	behind := r.Total - r.Counts[journal.BulkPlanned]
	line := progressWords(r, behind)
	if w.bar.w != nil {
		w.bar.draw(behind, r.Total, line)
		return
	}
	const parts = 10
	part := int64(0)
	if r.Total > 0 {
		part = behind * parts / r.Total
	}
	if now := fmt.Sprint(part, r.State, value(r.Hold)); now != w.last && !w.c.json() {
		w.last = now
		fmt.Fprintln(w.c.errOut, line)
	}
}

// progressWords returns how far a run has come.
func progressWords(r *api.BulkRun, behind int64) string {
	if r.State == journal.BulkPreparing {
		return fmt.Sprintf("preparing, %s so far", deadLetters(r.Total))
	}
	words := []string{fmt.Sprintf("%d of %d", behind, r.Total)}
	for _, o := range []journal.BulkOutcome{journal.BulkRecovered, journal.BulkDeadAgain, journal.BulkRefused} {
		if n := r.Counts[o]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, strings.ReplaceAll(string(o), "_", " ")))
		}
	}
	switch {
	case r.State != journal.BulkRunning:
		words = append(words, inertLine(string(r.State), maxCell)+by(r.ChangedBy))
	case r.Hold != nil:
		words = append(words, holdWords(r))
	case r.PerMinute > 0:
		left := time.Duration(r.Counts[journal.BulkPlanned]) * time.Minute / time.Duration(r.PerMinute)
		words = append(words, left.Round(time.Second).String()+" left")
	}
	return strings.Join(words, ", ")
}

func by(who *string) string {
	if who == nil {
		return ""
	}
	return " by " + inertLine(*who, maxCell)
}

// holdWords say why a run decides nothing for the moment.
func holdWords(r *api.BulkRun) string {
	why := value(r.Hold)
	if why == deadletter.HoldEngine {
		why = "the engine does not answer"
	}
	return "waits since " + minute(inertLine(value(r.HeldAt), maxCell)) + ": " + inertLine(why, maxCell) +
		"; it goes on by itself"
}
