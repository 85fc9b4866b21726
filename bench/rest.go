package main

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
)

// rest returns the gateway's REST API.
func (g *gateway) rest() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/topology", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"gatewayVersion":"8.6.0"}`))
	})
	mux.HandleFunc("POST /v2/jobs/activation", g.activateREST)
	mux.HandleFunc("POST /v2/jobs/{key}/{verb}", func(w http.ResponseWriter, r *http.Request) {
		key, _ := strconv.ParseInt(r.PathValue("key"), 10, 64) // 0 is nobody's
		if g.answer(key) != nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("PUT /v2/element-instances/{key}/variables", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

func (g *gateway) activateREST(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Type, Worker      string
		MaxJobsToActivate int32
		RequestTimeout    int64
	}
	_ = json.NewDecoder(r.Body).Decode(&in) // a client that asks for nothing is given nothing
	type job struct {
		Key                int64           `json:"key"`
		ProcessInstanceKey int64           `json:"processInstanceKey"`
		ElementInstanceKey int64           `json:"elementInstanceKey"`
		Type               string          `json:"type"`
		TenantID           string          `json:"tenantId"`
		Retries            int32           `json:"retries"`
		CustomHeaders      json.RawMessage `json:"customHeaders"`
		Variables          json.RawMessage `json:"variables"`
	}
	var out struct {
		Jobs []job `json:"jobs"`
	}
	for _, j := range g.take(&pb.ActivateJobsRequest{Type: in.Type, Worker: in.Worker, MaxJobsToActivate: in.MaxJobsToActivate}) {
		out.Jobs = append(out.Jobs, job{j.Key, j.ProcessInstanceKey, j.ElementInstanceKey, j.Type, j.TenantId, j.Retries,
			json.RawMessage(j.CustomHeaders), json.RawMessage(j.Variables)})
	}
	if len(out.Jobs) == 0 {
		select {
		case <-r.Context().Done():
		case <-time.After(time.Duration(in.RequestTimeout) * time.Millisecond):
		}
	}
	_ = json.NewEncoder(w).Encode(out)
}
