package main

import (
	"encoding/json"
	"fmt"

	"github.com/yannh/kubeconform/pkg/resource"
	"github.com/yannh/kubeconform/pkg/validator"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// judge says what is wrong with an object.
type judge func(object map[string]any) []string

// conform judges objects by the API's schemas in a folder.
func conform(schemas schemaDir) (judge, error) {
	v, err := validator.New([]string{string(schemas) + "/{{.ResourceKind}}{{.KindSuffix}}.json"}, validator.Opts{Strict: true})
	if err != nil {
		return nil, fmt.Errorf("prepare kubeconform: %w", err)
	}
	return func(object map[string]any) []string {
		content, err := yaml.Marshal(object)
		if err != nil {
			return []string{err.Error()}
		}
		if result := v.ValidateResource(resource.Resource{Bytes: content}); result.Status != validator.Valid {
			return []string{fmt.Sprintf("kubeconform: %v", result.Err)}
		}
		return nil
	}, nil
}

// restricted judges pods by the code with which the API server enforces the profile of that name.
func restricted() (judge, error) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return nil, fmt.Errorf("prepare the restricted profile: %w", err)
	}
	return func(object map[string]any) []string {
		template := any(object)
		switch object["kind"] {
		case "Pod":
		case "Deployment", "StatefulSet", "DaemonSet", "Job":
			spec, _ := object["spec"].(map[string]any)
			template = spec["template"]
		default:
			return nil
		}
		var pod struct {
			metav1.ObjectMeta `json:"metadata"`
			Spec              corev1.PodSpec `json:"spec"`
		}
		content, err := json.Marshal(template)
		if err == nil {
			err = json.Unmarshal(content, &pod)
		}
		if err != nil {
			return []string{"restricted profile: no pod could be read"}
		}
		level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
		if r := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec)); !r.Allowed {
			return []string{"restricted profile: " + r.ForbiddenDetail()}
		}
		return nil
	}, nil
}
