// Command grafana writes the service's Grafana dashboards, which business.yaml and operations.yaml describe, into a folder.
// What is the same in every panel stands once, and the thresholds are the journal's targets, not copies of them.
//
//	go run ./deploy/grafana deploy/grafana/dashboards
package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"log"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: grafana FOLDER")
	}
	for _, name := range names {
		text, err := encode(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[1], file(name)), text, 0o644) //nolint:gosec // as git keeps it
		}
		if err != nil {
			log.Fatalf("write %s: %v", name, err)
		}
	}
}

// names of all dashboards.
var names = []string{"business", "operations"}

// file is where a dashboard is kept.
func file(name string) string { return "retry-worker-" + name + ".json" }

//go:embed business.yaml operations.yaml
var descriptions embed.FS

// encode returns a dashboard as indented JSON.
func encode(name string) ([]byte, error) {
	description, err := descriptions.Open(name + ".yaml")
	if err != nil {
		return nil, err
	}
	defer description.Close()
	from := yaml.NewDecoder(description)
	from.KnownFields(true)
	var d dashboard
	if err := from.Decode(&d); err != nil {
		return nil, err
	}
	if err := d.fill(); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false) // expressions hold < and >
	to.SetIndent("", "  ")
	err = to.Encode(d.json())
	return text.Bytes(), err
}
