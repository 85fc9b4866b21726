package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// group is the samples of a process that show the same.
type group []*Sample

// groups returns those of a process, in its order: samples that show the same stand side by side.
func (p *Process) groups() []group {
	var all []group
	for i, x := range p.Samples {
		if i == 0 || x.Shows != p.Samples[i-1].Shows {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], x)
	}
	return all
}

// ids names the first of a group and, where there are more, the last.
func (g group) ids() string {
	if len(g) == 1 {
		return g[0].ID
	}
	return g[0].ID + " … " + g[len(g)-1].ID
}

// width of the longest that a process's samples show, in characters.
func (p *Process) width() int {
	most := 0
	for _, x := range p.Samples {
		most = max(most, utf8.RuneCountInString(x.Shows))
	}
	return most
}

// announce tells what is started, and what each sample is there to show.
func (s *story) announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprint(s.out, "\nThe demo starts samples of every bundled process, and plays everybody around the worker:\n")
	for _, p := range s.processes {
		fmt.Fprintf(s.out, "\n%s: %d %s; the demo plays %s\n", p.ID, len(p.Samples), p.Subjects, p.System)
		for _, g := range p.groups() {
			fmt.Fprintf(s.out, "  %2d  %-*s  %s\n", len(g), p.width(), g[0].Shows, g.ids())
		}
	}
}

// result is how so many samples that show the same have ended.
type result struct {
	Shows, How string
	Samples    int
}

// results of a process, in its order.
func (s *story) results(p *Process) []result {
	var all []result
	for _, x := range p.Samples {
		how := cmp.Or(s.ended[x], x.ID+" has not ended")
		at := slices.IndexFunc(all, func(r result) bool { return r.Shows == x.Shows && r.How == how })
		if at < 0 {
			at = len(all)
			all = append(all, result{Shows: x.Shows, How: how})
		}
		all[at].Samples++
	}
	return all
}

// waitsForYou is how a sample has ended that is left for the person who looks at the screen.
const waitsForYou = "waits for your review"

// leftOver counts what is left for that person, process by process; empty where nothing is.
func (s *story) leftOver() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, p := range s.processes {
		n := 0
		for _, x := range p.Samples {
			if s.ended[x] == waitsForYou {
				n++
			}
		}
		if n > 0 {
			all = append(all, fmt.Sprintf("%d of %s", n, p.ID))
		}
	}
	return strings.Join(all, ", ")
}

// summarize tells what became of each process's samples.
func (s *story) summarize() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn()
	fmt.Fprint(s.out, "\nWhat became of them:\n")
	for _, p := range s.processes {
		fmt.Fprintf(s.out, "\n%s: %d %s\n", p.ID, len(p.Samples), p.Subjects)
		for _, r := range s.results(p) {
			fmt.Fprintf(s.out, "  %2d  %-*s  %s\n", r.Samples, p.width(), r.Shows, r.How)
		}
	}
}
