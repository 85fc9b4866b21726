package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint/rules"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/releaseutil"
	"helm.sh/helm/v3/pkg/strvals"
	"sigs.k8s.io/yaml"
)

// kubeVersion that is rendered for unless a case says another.
const kubeVersion = "v1.36.3"

// render does what `helm template` does: checks the values by the schema, then fills the templates in. It returns the
// user's values.
func (r *Result) render(path string, c Case) (map[string]any, error) {
	chart, err := loader.Load(path)
	if err != nil {
		return nil, fmt.Errorf("load the chart: %w", err)
	}
	given := map[string]any{}
	maps.Copy(given, c.Values)
	for _, set := range c.Set {
		if err := strvals.ParseInto(set, given); err != nil {
			return nil, fmt.Errorf("read --set %s: %w", set, err)
		}
	}
	version, err := chartutil.ParseKubeVersion(cmp.Or(c.KubeVersion, kubeVersion))
	if err != nil {
		return nil, err
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	if !chartutil.IsCompatibleRange(chart.Metadata.KubeVersion, version.String()) {
		return nil, fmt.Errorf("chart requires kubeVersion: %s which is incompatible with Kubernetes %s", chart.Metadata.KubeVersion, version)
	}
	release := chartutil.ReleaseOptions{Name: c.Release, Namespace: c.Namespace, Revision: 1, IsInstall: true}
	values, err := chartutil.ToRenderValues(chart, given, release, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, values)
	if err != nil {
		return nil, err
	}
	return given, r.take(files)
}

// take sorts the files that came out of the templates as Helm does.
func (r *Result) take(files map[string]string) error {
	for path, text := range files {
		if strings.HasSuffix(path, "NOTES.txt") {
			r.Notes = text
			delete(files, path)
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return err
	}
	var texts []string
	for _, m := range manifests {
		texts = append(texts, m.Content)
	}
	for _, h := range hooks {
		texts = append(texts, h.Manifest)
	}
	for _, text := range texts {
		var object map[string]any
		if err := yaml.UnmarshalStrict([]byte(text), &object); err != nil { // a key that stands twice is a mistake
			return fmt.Errorf("parse what was rendered: %w\n%s", err, text)
		}
		r.Objects = append(r.Objects, object)
	}
	return nil
}

// lint is `helm lint --strict` with the case's values.
func lint(path string, c Case, values map[string]any) []string {
	linter := support.Linter{ChartDir: path}
	rules.Chartfile(&linter)
	rules.ValuesWithOverrides(&linter, values)
	version, _ := chartutil.ParseKubeVersion(cmp.Or(c.KubeVersion, kubeVersion)) // it was rendered for already
	rules.TemplatesWithSkipSchemaValidation(&linter, values, c.Namespace, version, false)
	rules.Dependencies(&linter)
	var problems []string
	for _, message := range linter.Messages {
		if message.Severity > support.InfoSev {
			problems = append(problems, "lint: "+message.Error())
		}
	}
	slices.Sort(problems)
	return problems
}
