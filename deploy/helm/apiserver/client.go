package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// namespace that objects belong to; a Deployment whose pods would not be let in gets a warning.
const namespace = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"camunda","labels":{
	"pod-security.kubernetes.io/enforce":"restricted","pod-security.kubernetes.io/warn":"restricted"}}}`

// paths of the kinds that may come, below a namespace.
var paths = map[string]string{
	"Deployment": "apis/apps/v1/%s/deployments", "Service": "api/v1/%s/services", "ServiceAccount": "api/v1/%s/serviceaccounts",
	"ConfigMap": "api/v1/%s/configmaps", "Secret": "api/v1/%s/secrets", "Pod": "api/v1/%s/pods", "PersistentVolumeClaim": "api/v1/%s/persistentvolumeclaims",
	"Ingress": "apis/networking.k8s.io/v1/%s/ingresses", "NetworkPolicy": "apis/networking.k8s.io/v1/%s/networkpolicies",
	"PodDisruptionBudget": "apis/policy/v1/%s/poddisruptionbudgets", "PodMonitor": "apis/monitoring.coreos.com/v1/%s/podmonitors",
	"ServiceMonitor": "apis/monitoring.coreos.com/v1/%s/servicemonitors", "PrometheusRule": "apis/monitoring.coreos.com/v1/%s/prometheusrules",
}

var client = http.Client{Timeout: time.Minute, Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // its certificate was made a moment ago, on loopback
}}

// prepare waits until it serves, and makes the namespace and the definitions.
func (s *server) prepare(ctx context.Context, definitions string) error {
	if err := s.await(ctx, func() bool {
		status, _, _ := s.call(ctx, http.MethodGet, "readyz", nil)
		return status == http.StatusOK
	}); err != nil {
		return err
	}
	if problems := s.create(ctx, "api/v1/namespaces", []byte(namespace)); len(problems) > 0 {
		return fmt.Errorf("make the namespace: %s", strings.Join(problems, "; "))
	}
	files, err := filepath.Glob(filepath.Join(definitions, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err == nil {
			content, err = yaml.YAMLToJSON(content)
		}
		if err != nil {
			return err
		}
		if problems := s.create(ctx, "apis/apiextensions.k8s.io/v1/customresourcedefinitions", content); len(problems) > 0 {
			return fmt.Errorf("make the definition %s: %s", file, strings.Join(problems, "; "))
		}
	}
	return s.await(ctx, func() bool {
		for _, kind := range []string{"PodMonitor", "ServiceMonitor", "PrometheusRule"} {
			if status, _, _ := s.call(ctx, http.MethodGet, fmt.Sprintf(paths[kind], "namespaces/camunda"), nil); status != http.StatusOK {
				return false
			}
		}
		return true
	})
}

func (s *server) await(ctx context.Context, met func() bool) error {
	for !met() {
		select {
		case err := <-s.ended:
			return fmt.Errorf("the API server ended: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("the API server is not ready: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// try says what a dry run of creating an object says.
func (s *server) try(ctx context.Context, object map[string]any) []string {
	path, ok := paths[fmt.Sprint(object["kind"])]
	if !ok {
		return []string{fmt.Sprintf("no path is known for the kind %v", object["kind"])}
	}
	content, err := json.Marshal(object)
	if err != nil {
		return []string{err.Error()}
	}
	return s.create(ctx, fmt.Sprintf(path, "namespaces/camunda")+"?dryRun=All&fieldValidation=Strict", content)
}

// create an object; the warnings of one that was taken are problems too.
func (s *server) create(ctx context.Context, path string, object []byte) []string {
	status, warnings, answer := s.call(ctx, http.MethodPost, path, object)
	if status == http.StatusCreated {
		return warnings
	}
	return append(warnings, fmt.Sprintf("%d %s", status, answer))
}

func (s *server) call(ctx context.Context, method, path string, body []byte) (status int, warnings []string, answer string) {
	request, err := http.NewRequestWithContext(ctx, method, s.url+"/"+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err.Error()
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, err.Error()
	}
	var failure struct{ Message string }
	if json.Unmarshal(content, &failure) != nil || failure.Message == "" {
		failure.Message = string(content)
	}
	return response.StatusCode, response.Header.Values("Warning"), failure.Message
}
