package catalogue

import (
	"os"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"retry-worker/internal/testkit/seeded"
)

// mistakes are what a person, or a broken template, puts in the place of a value.
var mistakes = rapid.SampledFrom([]string{
	"", "null", "~", "0", "-1", "1", "2.5", "1e9", "1001", "true", "''", "'5'", "1ms", "5s", "1m", "90s", "4h", "-5s", "0s", "367d", "61500ms",
	"0%", "99.999%", "100%", "50%", "[]", "{}", "[1s, 10m]", "[a, [b]]", "{a: b}", "tiss-submission", "ti", "TIMEOUT", "DUPLICATE_CLAIM", "503", "5xx",
	"retry", "reject", "variable", "^a$", "^(a|b)$", "(", "'[0-9]{4}'", "abc", "ação", "2026-01-01", ".inf", "retryCount", "submissionError",
})

// TestMutatedCatalogues: a sound catalogue with some mistakes in it is sound still, or its problems say where; it never
// becomes policies that cannot decide.
func TestMutatedCatalogues(t *testing.T) {
	for _, file := range []string{"testdata/every-key.yaml", "testdata/extends/all-kinds-of-changes.yaml"} {
		content, err := os.ReadFile(file)
		mustDo(t, err)
		t.Run(file, func(t *testing.T) { mutated(t, content) })
	}
}

func mutated(t *testing.T, content []byte) {
	sound, refused := 0, 0
	seeded.Check(t, func(rt *rapid.T) {
		var doc yaml.Node
		mustDo(t, yaml.Unmarshal(content, &doc))
		for range rapid.IntRange(1, 3).Draw(rt, "mistakes") {
			mutate(rt, &doc)
		}
		changed, err := yaml.Marshal(&doc)
		mustDo(t, err)
		c, err := Parse("mutated", changed)
		if err != nil {
			refused++
			wantProblems(t, err)
		} else {
			sound++
			for name, p := range c.Policies {
				wantSound(t, name, p)
			}
		}
		if t.Failed() {
			rt.Fatalf("by\n%s\n%v", changed, err)
		}
	})
	if refused == 0 {
		t.Errorf("none of %d was refused", sound)
	}
	t.Logf("%d sound, %d refused", sound, refused)
}

// mutate changes one value somewhere in doc, takes a key away, or says one twice.
func mutate(t *rapid.T, doc *yaml.Node) {
	n := doc.Content[0]
	for len(n.Content) > 0 {
		i := rapid.IntRange(0, len(n.Content)-1).Draw(t, "child")
		if n.Kind == yaml.MappingNode {
			i |= 1 // its value
		}
		here := rapid.IntRange(0, 9).Draw(t, "here")
		switch {
		case here == 0 && n.Kind == yaml.MappingNode:
			n.Content = append(n.Content[:i-1:i-1], n.Content[i+1:]...)
			return
		case here == 1 && n.Kind == yaml.MappingNode:
			n.Content = append(n.Content, n.Content[i-1], n.Content[i])
			return
		case here == 2 || len(n.Content[i].Content) == 0:
			var mistake yaml.Node
			if yaml.Unmarshal([]byte(mistakes.Draw(t, "mistake")), &mistake) == nil && len(mistake.Content) > 0 {
				n.Content[i] = mistake.Content[0]
			}
			return
		}
		n = n.Content[i]
	}
}
