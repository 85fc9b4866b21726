package api

import (
	_ "embed" // the description is part of the program
	"net/http"

	"go.uber.org/zap"
)

// OpenAPI describes the API (OpenAPI 3.1, YAML). The tests hold it against the server, both ways.
//
//go:embed openapi.yaml
var OpenAPI []byte

// openapi answers GET /api/v1/openapi.yaml.
func (s *API) openapi(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml; charset=utf-8")
	if _, err := w.Write(OpenAPI); err != nil {
		s.log.Debug("an answer of the API was not taken", zap.Error(err))
	}
}
