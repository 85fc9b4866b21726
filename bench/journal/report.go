package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// report prints everything as Markdown.
func report(out io.Writer, s settings, all []*bench, missing []string) error {
	w := &writer{out: out}
	w.line("The journal alone: each decision recorded before it is answered. %d CPUs, GOMAXPROCS %d where nothing else is said, "+
		"%d rounds: median (lowest–highest). Random claim ids; of 100 failures %d are a claim's first, 77 are retried, 15 permanent, 8 exhausted. "+
		"Reading, redacting and identifying a failure is in all figures but those that compare an empty journal with a full one.", runtime.NumCPU(), usualProcessors, s.rounds, firstFailures)
	for _, b := range all {
		w.line("%s: %s.", b.name, b.about)
	}
	for _, m := range missing {
		w.line("%s", m)
	}
	for _, b := range all {
		b.reportThroughput(w)
	}
	reportProcessors(w, all)
	reportLatency(w, all)
	if s.letters > 0 && len(all) > 0 {
		reportBulk(w, all)
	}
	reportFlatness(w, all)
	reportSize(w, all)
	return w.err
}

func (b *bench) reportThroughput(w *writer) {
	w.table("%s, callers in flight|decisions/s (goal ≥ 5,000)|commits/s|decisions per commit|CPU per decision|others' CPU", b.name)
	for _, callers := range inFlight {
		m := b.floods[load{usualProcessors, callers}]
		w.row("%d|%s|%s|%.0f|%s|%s", callers, spread(all(m, sample.perSecond), 0), grouped(median(all(m, sample.commitRate))),
			median(all(m, sample.batch)), b.cost(m), others(m))
	}
}

// cost is the CPU time of a decision, that of a server apart.
func (b *bench) cost(m []sample) string {
	text := fmt.Sprintf("%.0f µs", median(all(m, sample.ownEach)))
	if server := median(all(m, sample.serverEach)); server > 0 {
		text += fmt.Sprintf(" + server's %.0f µs", server)
	}
	return text
}

// others is what other programs had of the machine.
func others(m []sample) string {
	return fmt.Sprintf("%.0f %%", 100*median(all(m, sample.others)))
}

func (m sample) ownEach() float64    { return m.each(m.own) }
func (m sample) serverEach() float64 { return m.each(m.server) }
func (m sample) allEach() float64    { return m.each(m.own + m.server) }
func (m sample) timeEach() float64   { return m.each(m.took) }

func reportProcessors(w *writer, benches []*bench) {
	w.table("GOMAXPROCS, decisions/s with 50, 100, 200 callers; CPU per decision with %d|1|2|4", usualCallers)
	for _, b := range benches {
		cells := []string{b.name}
		for _, n := range processors {
			var rates []string
			for _, callers := range inFlight {
				rates = append(rates, grouped(median(all(b.floods[load{n, callers}], sample.perSecond))))
			}
			cells = append(cells, strings.Join(rates, ", ")+"; "+b.cost(b.floods[load{n, usualCallers}]))
		}
		w.row("%s", strings.Join(cells, "|"))
	}
}

func reportLatency(w *writer, benches []*bench) {
	w.table("wait for the record, failures coming at random|per second|p50|p99 (goal < 20 ms)|max|others' CPU")
	for _, b := range benches {
		for _, p := range b.paces {
			w.row("%s, young journal|%s|%s", b.name, grouped(p.rate), p.cells())
		}
		for _, p := range b.fullPaces {
			w.row("%s, %s attempts|%s|%s", b.name, grouped(float64(b.filled.attempts)), grouped(p.rate), p.cells())
		}
	}
}

func (p pace) cells() string {
	var cells []string
	for _, share := range []float64{0.5, 0.99, 1} {
		cells = append(cells, spread(all(p.rounds, func(l latency) float64 { return l.at(share).Seconds() * 1000 }), 1)+" ms")
	}
	cells = append(cells, fmt.Sprintf("%.0f %%", 100*median(all(p.rounds, func(l latency) float64 { return l.others() }))))
	return strings.Join(cells, "|")
}

func reportFlatness(w *writer, benches []*bench) {
	w.table("one decision with %d callers|empty journal|full, of the latest claims|ratio (goal ≤ 1.5)|full, of any claim|ratio", usualCallers)
	for _, b := range benches {
		of := func(what string, value func(sample) float64) {
			empty, latest, any := all(b.empty, value), all(b.latest, value), all(b.any, value)
			w.row("%s, %s|%.0f µs|%.0f µs|%s|%.0f µs|%s", b.name, what, median(empty),
				median(latest), spread(ratios(latest, empty), 2), median(any), spread(ratios(any, empty), 2))
		}
		of("CPU of the process", sample.ownEach)
		if b.cpu() > 0 {
			of("CPU with the server's", sample.allEach)
		}
		of("time", sample.timeEach)
		w.row("%s, others' CPU meanwhile|%s|%s||%s|", b.name, others(b.empty), others(b.latest), others(b.any))
	}
}

// ratios of each round, whose figures were measured one right after the other.
func ratios(of, to []float64) []float64 {
	r := make([]float64, len(of))
	for i := range r {
		r[i] = of[i] / to[i]
	}
	return r
}

func reportSize(w *writer, benches []*bench) {
	w.table("the full journal|attempts|claims|bytes per attempt|opening it")
	for _, b := range benches {
		w.row("%s|%s|%s|%s|%.1f s", b.name, grouped(float64(b.filled.attempts)), grouped(float64(b.filled.claims)),
			grouped(b.perAttempt), b.reopened.Seconds())
	}
}

// writer remembers what could not be printed.
type writer struct {
	out io.Writer
	err error
}

func (w *writer) line(format string, args ...any) {
	if _, err := fmt.Fprintf(w.out, format+"\n", args...); err != nil && w.err == nil {
		w.err = fmt.Errorf("print the figures: %w", err)
	}
}

// table begins one; | stands between its columns, the first of which is text.
func (w *writer) table(format string, args ...any) {
	head := fmt.Sprintf(format, args...)
	w.line("\n| %s |", strings.ReplaceAll(head, "|", " | "))
	w.line("| ---%s |", strings.Repeat(" | ---:", strings.Count(head, "|")))
}

func (w *writer) row(format string, args ...any) {
	w.line("| %s |", strings.ReplaceAll(fmt.Sprintf(format, args...), "|", " | "))
}

// all are one figure of all samples.
func all[T any](from []T, value func(T) float64) []float64 {
	values := make([]float64, len(from))
	for i := range from {
		values[i] = value(from[i])
	}
	return values
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// spread is the median and what the rounds lie between.
func spread(values []float64, decimals int) string {
	show := func(v float64) string {
		if decimals == 0 {
			return grouped(v)
		}
		return strconv.FormatFloat(v, 'f', decimals, 64)
	}
	return fmt.Sprintf("%s (%s–%s)", show(median(values)), show(slices.Min(values)), show(slices.Max(values)))
}

// grouped is a whole number with commas.
func grouped(v float64) string {
	digits := strconv.FormatInt(int64(v+0.5), 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
