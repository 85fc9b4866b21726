package faults_test

import (
	"strings"
	"syscall"
	"testing"

	"retry-worker/internal/gatewaytest"
	"retry-worker/internal/worker"
)

func tenantRows() []row {
	return []row{
		{"tenants: two of three served", playTenants},
		{"tenants set where multi-tenancy is off", playTenantsOff},
		{"a tenant the worker may not use", playTenantDenied},
	}
}

const tenantsSet = "RETRY_WORKER_TENANT_IDS=hospital-a,hospital-b"

func (s *scene) ofTenant(tenant string, n int) {
	jobs := make([]gatewaytest.Job, n)
	for i := range jobs {
		jobs[i] = claim(i, passing)
		jobs[i].TenantID = tenant
	}
	s.AddJobs(jobs...)
}

// playTenants: the ids are passed on, and jobs of others are left alone.
func playTenants(t *testing.T) result {
	s := newScene(t, gatewaytest.Options{EngineOptions: gatewaytest.EngineOptions{MultiTenancy: true}})
	for _, tenant := range []string{"hospital-a", "hospital-b", "hospital-c"} {
		s.ofTenant(tenant, inHand)
	}
	p := s.program("first", tenantsSet)
	s.settled(2 * inHand)
	p.signal(syscall.SIGTERM)
	p.ends(soonGone)
	for _, poll := range s.Polls("") {
		if got := strings.Join(poll.TenantIDs, " "); got != "hospital-a hospital-b" {
			t.Errorf("asked for jobs of %q, want both tenants", got)
		}
	}
	for _, j := range s.Journal() {
		if (j.TenantID == "hospital-c") != (len(j.Activations) == 0) {
			t.Errorf("a job of %s was activated %d times", j.TenantID, len(j.Activations))
		}
	}
	others := s.worker("others", func(c *setup) { c.TenantIDs = []string{"hospital-c"} })
	s.settled(3 * inHand)
	others.leave()
	return s.result(0).soon(t, recovery)
}

// playTenantsOff: the engine refuses every poll. The worker says so in one clear line and asks seldom.
func playTenantsOff(t *testing.T) result {
	s := newScene(t, gatewaytest.Options{})
	return s.refusedTenants("INVALID_ARGUMENT", "multi-tenancy is off")
}

func playTenantDenied(t *testing.T) result {
	s := newScene(t, gatewaytest.Options{EngineOptions: gatewaytest.EngineOptions{MultiTenancy: true, Tenants: []string{"hospital-c", "<default>"}}})
	return s.refusedTenants("PERMISSION_DENIED", "no access to tenant")
}

func (s *scene) refusedTenants(code, says string) result {
	s.t.Helper()
	p := s.program("first", tenantsSet)
	refused := func(v gatewaytest.View) bool { return len(v.Polls(worker.AnalyzeRetry)) >= refusedPolls }
	s.until("seven polls of a type", refused)
	s.wantPauses(worker.AnalyzeRetry)
	p.logged("engine does not answer polls")
	lines, _, err := p.out.lines("engine does not answer polls")
	if err != nil {
		s.t.Fatal(err)
	}
	const jobTypes = 4 // the reviews' among them
	if len(lines) != jobTypes {
		s.t.Errorf("%d log lines tell of it, want one for each of %d job types", len(lines), jobTypes)
	}
	for _, line := range lines {
		if text, _ := line["error"].(string); !strings.Contains(text, says) || !strings.Contains(text, "hospital-a") || line["level"] != "warn" {
			s.t.Errorf("the log says %v, want a warning that names the tenant and why it is refused (%s)", line, code)
		}
	}
	p.signal(syscall.SIGTERM)
	p.ends(soonGone)
	s.claims(inHand)
	next := s.worker("next", func(c *setup) { c.TenantIDs = []string{gatewaytest.DefaultTenant} })
	s.settled(inHand)
	next.leave()
	r := s.result(0).soon(s.t, recovery)
	r.remark = "by a worker with other settings"
	return r
}
