// Package helm holds what the Helm chart promises against Helm's own engine, the API's schemas, the worker's settings
// and a real run with the very environment that the chart renders. No cluster is needed.
package helm
