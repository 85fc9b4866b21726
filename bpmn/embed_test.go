package bpmn_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"retry-worker/bpmn"
)

// contractProcesses are the processes that the contract names; no model may be called otherwise.
var contractProcesses = []string{"SUB_06", "WHATSAPP_MESSAGE", "FAILED_JOB", "JOB_QUEUE"}

func TestModelsAreTheFilesOfTheFolder(t *testing.T) {
	names, err := filepath.Glob("*.bpmn")
	if err != nil {
		t.Fatal(err)
	}
	var embedded []string
	for _, m := range bpmn.Models() {
		embedded = append(embedded, m.Name)
		content, err := os.ReadFile(m.Name)
		if err != nil {
			t.Errorf("embedded model: %v", err)
		}
		if !bytes.Equal(m.Content, content) {
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
		if !slices.Contains(contractProcesses, m.ProcessID) || slices.Contains(seen, m.ProcessID) {
			t.Errorf("%s has the process id %q, expected one of %v, once", m.Name, m.ProcessID, contractProcesses)
		}
		if !strings.HasPrefix(strings.TrimSuffix(m.Name, ".bpmn")+"_", m.ProcessID+"_") {
			t.Errorf("%s holds the process %s, expected the file's name to begin with it", m.Name, m.ProcessID)
		}
		seen = append(seen, m.ProcessID)
	}
	if !slices.Contains(seen, "SUB_06") {
		t.Errorf("processes %v, expected SUB_06 among them", seen)
	}
}

func TestModelsContentIsTheCallersOwn(t *testing.T) {
	clear(bpmn.Models()[0].Content)
	if again := bpmn.Models()[0].Content; len(bytes.Trim(again, "\x00")) == 0 {
		t.Error("clearing one caller's content cleared the embedded model")
	}
}
