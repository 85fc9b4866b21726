package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"go.uber.org/zap"
)

// probeTime bounds one probe.
const probeTime = 10 * time.Second

// Prober asks whether destinations answer. It is safe for concurrent use.
type Prober struct {
	client *http.Client
	log    *zap.Logger
}

// NewProber returns a Prober that sends its requests through client.
func NewProber(client *http.Client, log *zap.Logger) *Prober { return &Prober{client, log} }

// OK reports whether a GET of address answers with one of the expected statuses. It does not read the body. If not, it
// logs why, naming the host alone, unless ctx was cancelled.
func (p *Prober) OK(ctx context.Context, address string, expect []int) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		p.log.Warn("a probe's address cannot be used", zap.String("event", "probe_failed"))
		return false
	}
	answer, err := p.client.Do(request)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok { // it names the whole address
			err = u.Err
		}
		p.failed(request, zap.Error(err))
		return false
	}
	answer.Body.Close()
	if !slices.Contains(expect, answer.StatusCode) {
		p.failed(request, zap.Int("status", answer.StatusCode))
		return false
	}
	return true
}

func (p *Prober) failed(r *http.Request, why zap.Field) {
	if errors.Is(r.Context().Err(), context.Canceled) {
		return
	}
	p.log.Warn("a probe failed", zap.String("event", "probe_failed"), zap.String("host", r.URL.Host), why)
}
