// Package bpmn holds the process models that come with the worker, ready to deploy.
package bpmn

import (
	"bytes"
	"embed"
	"encoding/xml"
	"fmt"
	"io/fs"
)

//go:embed *.bpmn
var files embed.FS

// Model is one BPMN file with its one executable process.
type Model struct {
	// Name of the file in the engine.
	Name string
	// ProcessID is the id by which instances are created.
	ProcessID string
	// Content of the file; the caller may change it.
	Content []byte
}

// Models returns all embedded models, ordered by file name. A model needs only its file in this folder. Models panics
// if a file does not have exactly one executable process; the tests prevent that. It is safe for concurrent use.
func Models() []Model {
	models, err := read(files)
	if err != nil {
		panic(err)
	}
	return models
}

func read(folder fs.FS) ([]Model, error) {
	names, err := fs.Glob(folder, "*.bpmn") // sorted
	if err != nil {
		return nil, fmt.Errorf("listing the models: %w", err)
	}
	models := make([]Model, 0, len(names))
	for _, name := range names {
		content, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, fmt.Errorf("reading a model: %w", err)
		}
		id, err := processID(content)
		if err != nil {
			return nil, fmt.Errorf("model %s: %w", name, err)
		}
		models = append(models, Model{Name: name, ProcessID: id, Content: content})
	}
	return models, nil
}

const modelNamespace = "http://www.omg.org/spec/BPMN/20100524/MODEL"

func processID(content []byte) (string, error) {
	var definitions struct {
		XMLName   xml.Name
		Processes []struct {
			ID         string `xml:"id,attr"`
			Executable bool   `xml:"isExecutable,attr"`
		} `xml:"http://www.omg.org/spec/BPMN/20100524/MODEL process"`
	}
	if err := xml.NewDecoder(bytes.NewReader(content)).Decode(&definitions); err != nil {
		return "", fmt.Errorf("reading it as XML: %w", err)
	}
	if definitions.XMLName != (xml.Name{Space: modelNamespace, Local: "definitions"}) {
		return "", fmt.Errorf("found the root element %s, expected BPMN 2.0's definitions", definitions.XMLName.Local)
	}
	var ids []string
	for _, p := range definitions.Processes {
		if p.Executable {
			ids = append(ids, p.ID)
		}
	}
	if len(ids) != 1 || ids[0] == "" {
		return "", fmt.Errorf("found the executable processes %q, expected exactly one with an id", ids)
	}
	return ids[0], nil
}
