package main

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// restricted checks pods by the code with which the API server enforces the profile of that name.
type restricted struct{ evaluator policy.Evaluator }

func newRestricted() (*restricted, error) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return nil, fmt.Errorf("prepare the restricted profile: %w", err)
	}
	return &restricted{evaluator}, nil
}

func (r *restricted) judge(object map[string]any) []string {
	var pod *corev1.PodTemplateSpec
	switch object["kind"] {
	case "Pod":
		pod = decodePod(object)
	case "Deployment", "StatefulSet", "DaemonSet", "Job":
		spec, _ := object["spec"].(map[string]any)
		pod = decodePod(spec["template"])
	default:
		return nil
	}
	if pod == nil {
		return []string{"restricted profile: no pod could be read"}
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	aggregate := policy.AggregateCheckResults(r.evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
	if aggregate.Allowed {
		return nil
	}
	return []string{"restricted profile: " + aggregate.ForbiddenDetail()}
}

func decodePod(object any) *corev1.PodTemplateSpec {
	content, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	var pod struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              corev1.PodSpec `json:"spec"`
	}
	if json.Unmarshal(content, &pod) != nil {
		return nil
	}
	return &corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
}
