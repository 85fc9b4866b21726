package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"retry-worker/internal/testkit"
)

// TestDocumentsNameCommandsThatExist holds the commands and flags that the documents tell people to type.
func TestDocumentsNameCommandsThatExist(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "deploy/helm/*/*.md"} {
		more, err := filepath.Glob(filepath.Join("../..", pattern))
		testkit.Must(t, err)
		pages = append(pages, more...)
	}
	typed := regexp.MustCompile("(?m)(?:`|^(?:\\$ )?|RETRY_WORKER_\\S+ )(?:bin/)?retry-worker((?: [a-z][a-z-]*)*)([^`#\n]*)")
	seen := 0
	for _, page := range pages {
		for _, m := range typed.FindAllStringSubmatch(testkit.Read(t, page), -1) {
			words := strings.Fields(m[1])
			if len(words) == 0 {
				continue
			}
			seen++
			command, rest, err := (&cli{}).root().Find(words)
			if err != nil || command.HasSubCommands() && len(rest) > 0 {
				t.Errorf("%s: %q: no such command (%v)", page, m[0], err)
				continue
			}
			command.InitDefaultHelpFlag()
			known := pflag.NewFlagSet("", pflag.ContinueOnError)
			known.AddFlagSet(command.Flags())
			known.AddFlagSet(command.InheritedFlags())
			for _, flag := range regexp.MustCompile(`--([a-z][a-z-]*)`).FindAllStringSubmatch(m[2], -1) {
				if known.Lookup(flag[1]) == nil {
					t.Errorf("%s: %q: no flag --%s", page, m[0], flag[1])
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("%d commands were found; this test looks for the wrong thing", seen)
	}
}
