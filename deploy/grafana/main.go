// Command grafana writes the service's Grafana dashboards into a folder. What is the same in every panel stands once, and the
// thresholds are the journal's targets, not copies of them.
//
//	go run ./deploy/grafana deploy/grafana/dashboards
package main

import (
	"bytes"
	"encoding/json"
	"log"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: grafana FOLDER")
	}
	for name, d := range dashboards() {
		text, err := d.encode()
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[1], name), text, 0o644) //nolint:gosec // as git keeps it
		}
		if err != nil {
			log.Fatalf("write %s: %v", name, err)
		}
	}
}

// dashboards returns all of them, by the names of their files.
func dashboards() map[string]*dashboard {
	return map[string]*dashboard{"retry-worker-business.json": business(), "retry-worker-operations.json": operations()}
}

// encode returns a dashboard as indented JSON.
func (d *dashboard) encode() ([]byte, error) {
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false) // expressions hold < and >
	to.SetIndent("", "  ")
	err := to.Encode(d.json())
	return text.Bytes(), err
}
