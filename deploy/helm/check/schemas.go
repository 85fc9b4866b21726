package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// schemaDir is a folder of JSON schemas, one per kind, named as kubeconform asks for them.
type schemaDir string

// write makes strict schemas of an API's description and of custom resource definitions: what they do not know is refused.
func (d schemaDir) write(openAPI string, crds string) error {
	if err := os.MkdirAll(string(d), 0o755); err != nil {
		return err
	}
	for _, group := range []string{"api__v1", "apis__apps__v1", "apis__networking.k8s.io__v1", "apis__policy__v1"} {
		if err := d.writeGroup(filepath.Join(openAPI, group+"_openapi.json")); err != nil {
			return err
		}
	}
	paths, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	if err != nil || len(paths) == 0 {
		return fmt.Errorf("no custom resource definitions in %s (%v)", crds, err)
	}
	for _, path := range paths {
		if err := d.writeDefinition(path); err != nil {
			return fmt.Errorf("read the custom resource definition %s: %w", path, err)
		}
	}
	return nil
}

// kinds that the chart may render; making schemas of all would take seconds.
const kinds = " Deployment Service ServiceAccount ConfigMap Secret Pod PersistentVolumeClaim Ingress NetworkPolicy PodDisruptionBudget "

type groupVersionKind struct{ Group, Version, Kind string }

func (d schemaDir) writeGroup(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the API's description: %w", err)
	}
	var document struct {
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	var named struct {
		Components struct {
			Schemas map[string]struct {
				Kinds []groupVersionKind `json:"x-kubernetes-group-version-kind"`
			}
		}
	}
	if err := errors.Join(json.Unmarshal(content, &document), json.Unmarshal(content, &named)); err != nil {
		return fmt.Errorf("read the API's description %s: %w", path, err)
	}
	closeObjects(document.Components.Schemas)
	for name, schema := range named.Components.Schemas {
		for _, gvk := range schema.Kinds {
			if !strings.Contains(kinds, " "+gvk.Kind+" ") {
				continue
			}
			root := map[string]any{"$ref": "#/components/schemas/" + name, "components": document.Components}
			if err := d.writeSchema(gvk, root); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d schemaDir) writeDefinition(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var definition struct {
		Spec struct {
			Group string
			Names struct{ Kind string }
			// Versions of the kind.
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema map[string]any }
			}
		}
	}
	if err := yaml.Unmarshal(content, &definition); err != nil {
		return err
	}
	for _, v := range definition.Spec.Versions {
		closeObjects(v.Schema.OpenAPIV3Schema)
		// The definition leaves the metadata to Kubernetes.
		if properties, ok := v.Schema.OpenAPIV3Schema["properties"].(map[string]any); ok {
			properties["metadata"] = map[string]any{"type": "object"}
		}
		gvk := groupVersionKind{definition.Spec.Group, v.Name, definition.Spec.Names.Kind}
		if err := d.writeSchema(gvk, v.Schema.OpenAPIV3Schema); err != nil {
			return err
		}
	}
	return nil
}

// writeSchema under the name that kubeconform makes of a kind: deployment-apps-v1.json, service-v1.json.
func (d schemaDir) writeSchema(gvk groupVersionKind, schema map[string]any) error {
	name := gvk.Kind + "-"
	if group, _, _ := strings.Cut(gvk.Group, "."); group != "" {
		name += group + "-"
	}
	content, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(string(d), strings.ToLower(name+gvk.Version)+".json"), content, 0o600)
}

// closeObjects refuses properties that an object's schema does not name, all the way down, and takes a number or a text
// where Kubernetes takes either.
func closeObjects(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if s["x-kubernetes-int-or-string"] == true {
			delete(s, "type")
		}
		_, listed := s["properties"].(map[string]any)
		if _, open := s["additionalProperties"]; listed && !open && s["x-kubernetes-preserve-unknown-fields"] != true {
			s["additionalProperties"] = false
		}
		for _, part := range s {
			closeObjects(part)
		}
	case []any:
		for _, part := range s {
			closeObjects(part)
		}
	}
}
