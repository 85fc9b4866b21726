package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
)

type restJob struct {
	Key, ElementInstanceKey json.Number
	Variables               struct {
		SubmissionError string
		RetryCount      int
	}
}

// runREST is the same loop over REST.
func runREST(base string) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = active + 1
	c, jobs := &http.Client{Transport: transport}, make(chan restJob, active)
	for range active {
		go func() {
			for j := range jobs {
				out, code := decide(j.Variables.SubmissionError, j.Variables.RetryCount)
				path := base + "/v2/jobs/" + j.Key.String()
				if code == "" {
					call(c, http.MethodPost, path+"/completion", map[string]any{"variables": out}, nil)
					continue
				}
				call(c, http.MethodPut, base+"/v2/element-instances/"+j.ElementInstanceKey.String()+"/variables",
					map[string]any{"variables": out}, nil)
				call(c, http.MethodPost, path+"/error", map[string]any{"errorCode": code, "variables": out}, nil)
			}
		}()
	}
	for {
		var out struct{ Jobs []restJob }
		call(c, http.MethodPost, base+"/v2/jobs/activation", map[string]any{
			"type": os.Args[2], "worker": "bare", "timeout": 10_000, "requestTimeout": 2_000,
			"maxJobsToActivate": max(active-len(jobs), 1),
			"fetchVariable":     []string{"claimId", "submissionError", "retryCount", "lastSubmissionTime"},
		}, &out)
		for _, j := range out.Jobs {
			jobs <- j
		}
	}
}

// call sends in, and reads the answer into out, which may be nil.
func call(c *http.Client, method, url string, in, out any) {
	body, err := json.Marshal(in)
	if err != nil {
		log.Fatal(err)
	}
	request, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: %s", method, url, response.Status)
	}
	if err == nil && out != nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		log.Fatal(err)
	}
}
