package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// stages are what the sessions of each folder of testdata are played on. A stage returns what stands in its files for what
// differs each time, each followed by that.
var stages = map[string]func(t *testing.T, session string) (names func() []string){
	"sessions": func(t *testing.T, _ string) func() []string {
		testkit.Environment(t, nil)
		return func() []string { return nil }
	},
	"journal": func(t *testing.T, _ string) func() []string {
		audited(t)
		return func() []string { return nil }
	},
	"deadletters": openForSession,
}

// TestSessions plays the sessions of testdata: each line that begins with "$ retry-worker" is run, and what follows is what
// it prints (standard error behind "! ") and its exit code; "$ export" sets a variable for the lines below. To add a case, add
// its "$" line and run `go test ./cmd/retry-worker -run Sessions -update`.
func TestSessions(t *testing.T) {
	for folder, stage := range stages {
		files, err := filepath.Glob("testdata/" + folder + "/*.txt")
		if err != nil || len(files) == 0 {
			t.Fatalf("no %s (%v)", folder, err)
		}
		for _, file := range files {
			session := strings.TrimSuffix(filepath.Base(file), ".txt")
			t.Run(folder+"/"+session, func(t *testing.T) {
				golden.Check(t, file, play(t, testkit.Read(t, file), stage(t, session)))
			})
		}
	}
}

// play runs a session and returns it with what is printed now. names are what stands in it for what differs each time, each
// followed by that.
func play(t *testing.T, script string, names func() []string) string {
	var played strings.Builder
	printed := false // what a line begins with there means nothing
	for line := range strings.Lines(script) {
		if printed = printed && !strings.HasPrefix(line, "exit ") && !strings.HasPrefix(line, "$ "); printed {
			continue
		}
		if assignment, is := strings.CutPrefix(line, "$ export "); is {
			name, value, _ := strings.Cut(strings.TrimSpace(assignment), "=")
			t.Setenv(name, strings.NewReplacer(names()...).Replace(value))
			played.WriteString(line)
			continue
		}
		command, found := strings.CutPrefix(line, "$ retry-worker ")
		if !found {
			if strings.HasPrefix(line, "#") {
				played.WriteString(line)
			}
			continue
		}
		printed = true
		r := retryWorker(words(t, strings.NewReplacer(names()...).Replace(strings.TrimSuffix(command, "\n")))...)
		named := names()
		slices.Reverse(named)
		shown := strings.NewReplacer(named...)
		r.stdout, r.stderr = shown.Replace(r.stdout), shown.Replace(r.stderr)
		played.WriteString(line + strings.ReplaceAll(r.stdout, catalogue.Default().Version, "VERSION")) // each word of the catalogue changes that
		for problem := range strings.Lines(r.stderr) {
			played.WriteString("! " + problem)
		}
		fmt.Fprintf(&played, "exit %d\n\n", r.code)
	}
	return played.String()
}

// words splits a command as a shell does, as far as white space and quotes go.
func words(t *testing.T, command string) (all []string) {
	for rest := strings.TrimSpace(command); rest != ""; rest = strings.TrimLeft(rest, " ") {
		word := ""
		for rest != "" && rest[0] != ' ' {
			if quote := rest[0]; quote == '\'' || quote == '"' {
				inner, after, closed := strings.Cut(rest[1:], string(quote))
				if !closed {
					t.Fatalf("%s: no closing quote", command)
				}
				word, rest = word+inner, after
				continue
			}
			end := strings.IndexAny(rest, ` '"`)
			if end < 0 {
				end = len(rest)
			}
			word, rest = word+rest[:end], rest[end:]
		}
		all = append(all, word)
	}
	return all
}
