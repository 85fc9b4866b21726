package main

import (
	"fmt"

	"github.com/yannh/kubeconform/pkg/resource"
	"github.com/yannh/kubeconform/pkg/validator"
	"sigs.k8s.io/yaml"
)

// conform checks objects against the API's schemas.
type conform struct{ validator validator.Validator }

func newConform(schemas string) (*conform, error) {
	v, err := validator.New([]string{schemas + "/{{.ResourceKind}}{{.KindSuffix}}.json"}, validator.Opts{Strict: true})
	if err != nil {
		return nil, fmt.Errorf("prepare kubeconform: %w", err)
	}
	return &conform{v}, nil
}

func (c *conform) judge(object map[string]any) []string {
	content, err := yaml.Marshal(object)
	if err != nil {
		return []string{err.Error()}
	}
	result := c.validator.ValidateResource(resource.Resource{Bytes: content})
	if result.Status == validator.Valid {
		return nil
	}
	return []string{fmt.Sprintf("kubeconform: %v", result.Err)}
}
