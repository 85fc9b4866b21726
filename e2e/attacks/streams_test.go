package attacks_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
)

// allowed is what the chart gives the worker.
const allowed = 512 << 20

// Seven addresses, each with a hundred connections on which as many requests are begun as the worker takes and none is
// ended, are no more to it than the chart allows, and decisions are made meanwhile.
func TestUnfinishedStreams(t *testing.T) {
	for name, open := range map[string]func(s *streams, id uint32) error{
		"bodies that do not end": func(s *streams, id uint32) error {
			if err := s.begin(id, false, [2]string{":method", "POST"}, [2]string{":path", "/login"},
				[2]string{"content-type", form}, [2]string{"content-length", "65000"}); err != nil {
				return err
			}
			return s.framer.WriteData(id, false, []byte("token="))
		},
		"answers that nobody takes": func(s *streams, id uint32) error {
			return s.begin(id, true, [2]string{":method", "GET"}, [2]string{":path", "/login"}, [2]string{"accept-encoding", "gzip"},
				[2]string{"accept", "text/html"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := startTLS(t)
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			defer all.Wait()
			defer cancel()
			var begun atomic.Int64
			for i := range 700 {
				all.Go(func() {
					c, err := (&tls.Dialer{NetDialer: dialer(fmt.Sprintf("127.0.3.%d", i%7+1)),
						Config: &tls.Config{RootCAs: w.authority.Pool, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", w.API)
					if err != nil {
						return // no place: that is as good
					}
					context.AfterFunc(ctx, func() { c.Close() })
					s := &streams{framer: http2.NewFramer(c, c), most: 60}
					_ = s.keepOpen(c.Write, open, &begun)
				})
			}
			wait.Until(t, "4,000 streams are begun", func() bool { return begun.Load() >= 4000 })
			slowest := time.Duration(0)
			for i := range 50 {
				began := time.Now()
				jobKey := w.engine.AddJob(gateway.Job{Type: "analyze-retry", Variables: fmt.Sprintf(`{"claimId":"CLM-1-%d","submissionError":"TIMEOUT"}`, i)})
				wait.Until(t, "a decision is made under it", func() bool {
					j, _ := w.engine.Job(jobKey)
					return j.State == gateway.Completed
				})
				slowest = max(slowest, time.Since(began))
			}
			peak := memory(t, w.PID())
			harness.Report(t, "%s on 700 connections of 7 addresses (%d begun): at most %d MiB, the slowest of 50 decisions in %v",
				name, begun.Load(), peak>>20, slowest.Round(time.Millisecond))
			if peak > allowed {
				t.Errorf("the worker took %d MiB, where the chart allows %d", peak>>20, allowed>>20)
			}
		})
	}
}

// streams of one connection, at most as many at once as the server allows and most.
type streams struct {
	framer *http2.Framer
	most   int
}

// keepOpen begins streams, and another one for each that the server ends, until the connection ends.
func (s *streams) keepOpen(write func([]byte) (int, error), open func(*streams, uint32) error, begun *atomic.Int64) error {
	if _, err := write([]byte(http2.ClientPreface)); err != nil {
		return err
	}
	if err := s.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		return err
	}
	next, underWay := uint32(1), map[uint32]bool{}
	for settled := false; ; {
		f, err := s.framer.ReadFrame()
		if err != nil {
			return err
		}
		ended := false
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if f.IsAck() {
				continue
			}
			if n, told := f.Value(http2.SettingMaxConcurrentStreams); told {
				s.most = min(s.most, int(n))
			}
			settled = true
			err = s.framer.WriteSettingsAck()
		case *http2.RSTStreamFrame:
			ended = true
		case *http2.HeadersFrame:
			ended = f.StreamEnded()
		case *http2.DataFrame:
			ended = f.StreamEnded()
		}
		if ended {
			delete(underWay, f.Header().StreamID)
		}
		for ; err == nil && settled && len(underWay) < s.most; next += 2 {
			if err = open(s, next); err == nil {
				begun.Add(1)
			}
			underWay[next] = true
		}
		if err != nil {
			return err
		}
	}
}

// begin a stream by its headers.
func (s *streams) begin(id uint32, ends bool, headers ...[2]string) error {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, h := range append(headers, [2]string{":scheme", "https"}, [2]string{":authority", "localhost"}) {
		if strings.HasPrefix(h[0], ":") {
			_ = encoder.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
		}
	}
	for _, h := range headers {
		if !strings.HasPrefix(h[0], ":") {
			_ = encoder.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
		}
	}
	return s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: ends})
}

// memory returns the most that a process has had in memory.
func memory(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	testkit.Must(t, err)
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	testkit.Must(t, err)
	return n << 10
}
