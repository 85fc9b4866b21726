package fetch

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Step of a preparation.
type Step string

// The steps, in their order.
const (
	Waiting     Step = "wait for another process that fetches"
	Downloading Step = "download"
	Unpacking   Step = "unpack"
)

// Progress is how far a preparation is. It is reported by one goroutine at a time: at each step that
// takes longer than a moment, and about four times a second.
type Progress struct {
	What    string // "Zeebe 8.5.8"
	Step    Step
	Bytes   int64 // so far; 0 where it is not known
	Total   int64 // 0 where it is not known
	Elapsed time.Duration
}

// String is one line without an end of line: "download Zeebe 8.5.8: 120 of 212 MB, 12 s".
func (p Progress) String() string {
	const mega = 1_000_000
	line := fmt.Sprintf("%s %s: ", p.Step, p.What)
	if p.Total > 0 {
		line += fmt.Sprintf("%d of %d MB, ", p.Bytes/mega, p.Total/mega)
	} else if p.Bytes > 0 {
		line += fmt.Sprintf("%d MB, ", p.Bytes/mega)
	}
	return line + fmt.Sprintf("%d s", int(p.Elapsed.Seconds()))
}

// reportEvery is the time between two reports.
const reportEvery = 250 * time.Millisecond

// Reporter tells how far a preparation is.
type Reporter struct {
	what         string
	report       func(Progress) // nil: to nobody
	begun        time.Time
	bytes, total atomic.Int64
}

// NewReporter is a Reporter on what is prepared; report may be nil.
func NewReporter(what string, report func(Progress)) *Reporter {
	if report == nil {
		report = func(Progress) {}
	}
	return &Reporter{what: what, report: report, begun: time.Now()}
}

// During reports as long as work runs, and returns its error.
func (r *Reporter) During(s Step, work func() error) error {
	r.bytes.Store(0)
	r.total.Store(0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(reportEvery)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				r.report(Progress{r.what, s, r.bytes.Load(), r.total.Load(), time.Since(r.begun)})
			}
		}
	}()
	err := work()
	close(stop)
	<-stopped
	return err
}
