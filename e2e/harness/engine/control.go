package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// askTimeout bounds a request to the engine, which waits on a busy machine.
	askTimeout = 30 * time.Second
	// followEvery is the pause before an engine that is down is asked for its events again.
	followEvery = 20 * time.Millisecond
)

// client keeps no connections, as the engine comes and goes, and uses no proxy.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// call calls the control port, which must answer 200.
func (e *Engine) call(ctx context.Context, method, path, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, e.ControlURL()+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the engine: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, refused(fmt.Sprintf("ask the engine: %s: %s", request.URL, response.Status))
	}
	return response, nil
}

// refused is an answer other than 200.
type refused string

func (r refused) Error() string { return string(r) }

// ask returns the whole answer of a call.
func (e *Engine) ask(ctx context.Context, method, path, body string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	response, err := e.call(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// AddTime moves the engine's clock forward by d, in milliseconds, and returns when everything due by then has
// happened. Moves add up. This machine's clock stays.
func (e *Engine) AddTime(ctx context.Context, d time.Duration) error {
	e.change.Lock()
	defer e.change.Unlock()
	_, err := e.clock(ctx, http.MethodPost, "/add", fmt.Sprintf(`{"offsetMilli":%d}`, d.Milliseconds()))
	return err
}

// Time returns the engine's clock.
func (e *Engine) Time(ctx context.Context) (time.Time, error) {
	return e.clock(ctx, http.MethodGet, "", "")
}

func (e *Engine) clock(ctx context.Context, method, path, body string) (time.Time, error) {
	text, err := e.ask(ctx, method, "/actuator/clock"+path, body)
	var answer struct{ EpochMilli int64 }
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("the engine's clock: %w", err)
	}
	return time.UnixMilli(answer.EpochMilli), nil
}

// Follow calls take with each event of the engine, a line of JSON, in order and once, over all its restarts. It
// returns nil when ctx ends, and an error if the engine no longer has the next event.
func (e *Engine) Follow(ctx context.Context, take func(line []byte)) error {
	for next := int64(0); ; {
		err := e.follow(ctx, &next, take)
		if _, is := errors.AsType[refused](err); is {
			return err
		}
		select {
		case <-time.After(followEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// follow takes the events from the next one on, until the engine or ctx ends.
func (e *Engine) follow(ctx context.Context, next *int64, take func(line []byte)) error {
	response, err := e.call(ctx, http.MethodGet, fmt.Sprintf("/events?follow=true&from=%d", *next), "")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	for lines := bufio.NewReader(response.Body); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err // an event that a kill cut off comes again
		}
		var event struct{ Position int64 }
		if err := json.Unmarshal(line, &event); err != nil {
			return refused(fmt.Sprintf("read the engine's events: %v in %q", err, line))
		}
		take(line)
		*next = event.Position + 1
	}
}

// Counters are the engine's at one instant, in Prometheus' words. They start again with its process.
type Counters string

// Jobs returns how often an action happened to jobs of a type (empty: any): such as "created", "activated",
// "completed", "failed", "timed out", "error thrown", "canceled", "retries updated", "recurred".
func (c Counters) Jobs(jobType, action string) int {
	return c.sum("zeebe_job_events_total", jobType, action)
}

// Elements returns how often an action, such as "activated", "completed" or "terminated", happened to elements of a
// type, such as "PROCESS" or "SERVICE_TASK". An empty type is any.
func (c Counters) Elements(elementType, action string) int {
	return c.sum("zeebe_element_instance_events_total", elementType, action)
}

// PendingIncidents returns how many incidents are open.
func (c Counters) PendingIncidents() int { return c.sum("zeebe_pending_incidents_total", "", "") }

// sum adds up a counter over the labels that are empty.
func (c Counters) sum(name, kind, action string) (total int) {
	for line := range strings.Lines(string(c)) {
		labels, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if strings.HasPrefix(labels, name+"{") && (kind == "" || strings.Contains(labels, `type="`+kind+`"`)) &&
			(action == "" || strings.Contains(labels, `action="`+action+`"`)) {
			n, _ := strconv.Atoi(value)
			total += n
		}
	}
	return total
}

// Counters asks the engine for its counters.
func (e *Engine) Counters(ctx context.Context) (Counters, error) {
	text, err := e.ask(ctx, http.MethodGet, "/actuator/prometheus", "")
	return Counters(text), err
}
