package bpmn_test

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"retry-worker/bpmn"
	"retry-worker/internal/testkit"
)

func TestModelsAreTheFilesOfTheFolder(t *testing.T) {
	names, err := filepath.Glob("*.bpmn")
	testkit.Must(t, err)
	var embedded []string
	for _, m := range bpmn.Models() {
		embedded = append(embedded, m.Name)
		if string(m.Content) != testkit.Read(t, m.Name) {
			t.Errorf("%s is embedded with other content than the file has", m.Name)
		}
	}
	if !slices.Equal(embedded, names) {
		t.Errorf("embedded %v, expected the files %v", embedded, names)
	}
}

func TestModelsHaveTheContractsProcessIDs(t *testing.T) {
	var seen []string
	for _, m := range bpmn.Models() {
		if name := strings.ToUpper(strings.TrimSuffix(m.Name, ".bpmn")) + "_"; !strings.HasPrefix(name, m.ProcessID+"_") {
			t.Errorf("%s holds the process %s, expected the file's name to begin with it", m.Name, m.ProcessID)
		}
		seen = append(seen, m.ProcessID)
	}
	slices.Sort(seen)
	if want := slices.Sorted(maps.Keys(expectations)); !slices.Equal(seen, want) {
		t.Errorf("processes %v, expected the contract's %v, each once", seen, want)
	}
}

func TestModelsContentIsTheCallersOwn(t *testing.T) {
	clear(bpmn.Models()[0].Content)
	if again := bpmn.Models()[0].Content; len(bytes.Trim(again, "\x00")) == 0 {
		t.Error("clearing one caller's content cleared the embedded model")
	}
}
