package journal_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"retry-worker/internal/testkit"
)

// The scenarios in testdata/*.txt tell what the journal makes of a subject's failures, in an operator's words.
// testdata/README.md says how to read and write them.
var rewrite = flag.Bool("rewrite", false, "write what the scenarios in testdata come to into their files")

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runFile(t, file) })
		})
	}
}

func runFile(t *testing.T, file string) {
	steps := parseScenario(testkit.Read(t, file))
	s := newStage(t)
	var got strings.Builder
	for i := range steps {
		step := &steps[i]
		got.WriteString(step.before)
		if step.command == "" {
			continue
		}
		output := s.play(step.command)
		if output != step.output && !*rewrite {
			t.Errorf("%s:%d: %s\n--- is\n%s--- should be\n%s", file, step.line, step.command, output, step.output)
		}
		got.WriteString(step.command + "\n")
		if output != "" {
			got.WriteString("----\n" + output + "\n")
		}
	}
	if *rewrite {
		text := strings.TrimRight(strings.ReplaceAll(got.String(), "\n\n\n", "\n\n"), "\n") + "\n"
		testkit.Must(t, os.WriteFile(file, []byte(text), 0o644))
	}
}

// step is one command of a scenario with what it should come to.
type step struct {
	before  string // comments and empty lines
	line    int
	command string // empty at the end of the file
	output  string // every line ended
}

// parseScenario reads blocks: comments, one command; then "----" and its output up to an empty line, where it
// has one.
func parseScenario(text string) []step {
	var steps []step
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); {
		var s step
		for ; i < len(lines) && (lines[i] == "" || strings.HasPrefix(lines[i], "#")); i++ {
			s.before += lines[i] + "\n"
		}
		if i < len(lines) {
			s.line, s.command = i+1, lines[i]
			i++
		}
		if i < len(lines) && lines[i] == "----" {
			for i++; i < len(lines) && lines[i] != ""; i++ {
				s.output += lines[i] + "\n"
			}
			i++ // the empty line belongs to the output
		}
		steps = append(steps, s)
	}
	return steps
}
