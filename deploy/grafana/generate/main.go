// Command generate writes the dashboards of deploy/grafana into the folder dashboards beside it.
//
//	go run ./deploy/grafana/generate deploy/grafana/dashboards
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"retry-worker/deploy/grafana"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "Usage: generate FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	files, err := grafana.Files()
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Content, 0o644); err != nil {
			return fmt.Errorf("write a dashboard: %w", err)
		}
	}
	return nil
}
