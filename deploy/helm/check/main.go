// Command check renders the chart with Helm's own engine for many sets of values, and says what Helm's linter, the
// API's schemas (kubeconform) and the restricted Pod Security profile hold against each result.
//
// It is a module of its own, so that the worker's does not grow by Helm and Kubernetes. For each Case that it reads as
// JSON from standard input it writes one Result as JSON to standard output; package e2e/helm builds and asks it.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
)

// Case is one set of values, as `helm install NAME CHART --set … --values FILE` takes them.
type Case struct {
	Release, Namespace string

	Set         []string       // KEY=VALUE, after Values
	Values      map[string]any // a values file
	KubeVersion string         // of the cluster; empty: Helm's default
	Judge       bool           // have the result linted and its objects checked
}

// Result is what became of a Case.
type Result struct {
	Error    string           `json:",omitempty"` // Helm's, where it does not render
	Objects  []map[string]any `json:",omitempty"` // in the order of installation, hooks last
	Notes    string           `json:",omitempty"`
	Problems []string         `json:",omitempty"` // what linter, schemas and profile say
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	chart := flag.String("chart", "", "the chart's folder")
	kubernetes := flag.String("kubernetes", "", "folders with the API's description in OpenAPI 3, one per version to check against, separated by commas")
	crds := flag.String("crds", "", "folder with custom resource definitions (YAML)")
	flag.Parse()
	log.SetOutput(io.Discard) // Helm tells of every link that it follows
	dir, err := os.MkdirTemp("", "chart-schemas-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	pods, err := restricted()
	if err != nil {
		return err
	}
	judges := []judge{pods}
	for i, openAPI := range strings.Split(*kubernetes, ",") {
		schemas := schemaDir(fmt.Sprintf("%s/%d", dir, i))
		if err := schemas.write(openAPI, *crds); err != nil {
			return err
		}
		objects, err := conform(schemas)
		if err != nil {
			return err
		}
		judges = append(judges, objects)
	}
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	for in.More() {
		var c Case
		if err := in.Decode(&c); err != nil {
			return fmt.Errorf("read a case: %w", err)
		}
		if err := out.Encode(try(*chart, c, judges)); err != nil {
			return fmt.Errorf("write a result: %w", err)
		}
	}
	return nil
}

// try renders one case and has each object judged.
func try(chart string, c Case, judges []judge) Result {
	var r Result
	values, err := r.render(chart, c)
	if err != nil {
		return Result{Error: err.Error()}
	}
	if !c.Judge {
		return r
	}
	r.Problems = lint(chart, c, values)
	for _, object := range r.Objects {
		for _, judge := range judges {
			for _, problem := range judge(object) {
				metadata, _ := object["metadata"].(map[string]any)
				r.Problems = append(r.Problems, fmt.Sprintf("%v %v: %s", object["kind"], metadata["name"], problem))
			}
		}
	}
	return r
}
