package scenarios

import (
	"strings"
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// Personal data as it turns up in error texts: nobody's, but their check digits are right.
var personal = []string{"111.444.777-35", "52998224725", "898001234567808", "maria.exemplo@example.com"}

// Personal data in an error text reach the process, whose they are, and nothing else: neither the worker's
// log nor its metrics, nor the message of an error or an incident.
func TestPersonalDataStayInTheProcess(t *testing.T) {
	withEverybody(t, byGRPC, func(t *testing.T, s *world) {
		data := strings.Join(personal, ", ")
		texts := []string{"TIMEOUT ao enviar a conta do beneficiário " + data, "INVALID_PATIENT_DATA: beneficiário " + data}
		lines := make(map[int64]bool)
		for _, text := range texts {
			key := s.create("UNMAPPED", map[string]any{"analysis": worker.AnalyzeRetry, "claimId": s.claimID(len(lines)), "submissionError": text})
			s.awaitEnded(key)
			i := s.instance(key)
			lines[key] = true
			s.expectVariables(i, map[string]string{"originalError": jsonOf(text), "submissionError": jsonOf(text)})
			if a := i.jobs[0].answers[0]; a.intent == "ERROR_THROWN" {
				s.expectNothingPersonal("the error's message", a.message)
			}
		}
		rejected := []map[string]any{
			{"claimId": "beneficiário " + data, "submissionError": "TIMEOUT"},
			{"claimId": s.claimID(0), "submissionError": "TIMEOUT", "retryCount": data},
			{"claimId": s.claimID(0), "submissionError": "TIMEOUT", "lastSubmissionTime": "ontem, " + data},
		}
		for _, variables := range rejected {
			variables["analysis"] = worker.AnalyzeRetry
			key := s.create("UNMAPPED", variables)
			s.awaitAll([]int64{key}, "the incident", func(i *instance) bool { return len(i.incidents) > 0 })
			i := s.instance(key)
			lines[key] = true
			s.expectNothingPersonal("the incident's message", i.incidents[0].message)
			s.expectNothingPersonal("the failed job's message", i.jobs[0].failures[0].message)
			_, err := s.CancelProcessInstance(s.t.Context(), &pb.CancelProcessInstanceRequest{ProcessInstanceKey: key})
			testkit.Must(s.t, err)
		}
		for key := range lines {
			s.worker.Log.About(s.t, key, 1)
		}
		s.expectNothingPersonal("the worker's log", s.worker.Log.Text())
		s.expectNothingPersonal("the worker's metrics", s.worker.get(s.t, s.worker.Ops+"/metrics"))
		s.expectNothingPersonalKept()
		s.done("personal data stay in the process", "%d instances", len(lines))
	})
}

// expectNothingPersonalKept searches what the worker keeps and tells: the files of its journal, and the API.
func (s *world) expectNothingPersonalKept() {
	s.t.Helper()
	file := strings.TrimPrefix(s.database(), "sqlite:")
	for _, name := range []string{file, file + "-wal"} {
		s.expectNothingPersonal(name, testkit.Read(s.t, name))
	}
	for _, path := range []string{"", "/audit"} {
		s.expectNothingPersonal("the API's answer", s.worker.get(s.t, s.worker.API+"/api/v1/subjects/tiss-submission/"+s.claimID(0)+path))
	}
}

func (s *scenario) expectNothingPersonal(where, text string) {
	s.t.Helper()
	if text == "" {
		s.t.Errorf("%s is empty", where)
	}
	for _, secret := range personal {
		if strings.Contains(text, secret) {
			s.t.Errorf("%s holds %q", where, secret)
		}
	}
}
