package faults_test

import (
	"strings"
	"syscall"

	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/worker"
)

func tenantRows() []row {
	return []row{
		{fault: "tenants: two of three served", play: playTenants, real: true, options: gateway.Options{MultiTenancy: true}},
		{fault: "tenants set where multi-tenancy is off", play: playTenantsOff, real: true},
		{fault: "a tenant the worker may not use", play: playTenantDenied, real: true, options: gateway.Options{
			MultiTenancy: true, Tenants: []string{"hospital-c", gateway.DefaultTenant},
		}},
	}
}

const tenantsSet = "RETRY_WORKER_TENANT_IDS=hospital-a,hospital-b"

func (f *fixture) ofTenant(tenant string, n int) {
	jobs := make([]gateway.Job, n)
	for i := range jobs {
		jobs[i] = claim(i, passing)
		jobs[i].TenantID = tenant
	}
	f.AddJobs(jobs...)
}

// playTenants: the ids are passed on, and jobs of others are left alone.
func playTenants(f *fixture) result {
	for _, tenant := range []string{"hospital-a", "hospital-b", "hospital-c"} {
		f.ofTenant(tenant, inHand)
	}
	p := f.program("first", tenantsSet)
	f.settled(2 * inHand)
	p.signal(syscall.SIGTERM)
	p.ends(soonGone)
	for _, poll := range f.Polls("") {
		if got := strings.Join(poll.TenantIds, " "); got != "hospital-a hospital-b" {
			f.t.Errorf("asked for jobs of %q, want both tenants", got)
		}
	}
	for _, j := range f.Journal() {
		if (j.TenantID == "hospital-c") != (len(j.Activations) == 0) {
			f.t.Errorf("a job of %s was activated %d times", j.TenantID, len(j.Activations))
		}
	}
	others := f.worker("others", func(c *setup) { c.TenantIDs = []string{"hospital-c"} })
	f.settled(3 * inHand)
	others.leave()
	return f.result(0).soon(f.t, recovery)
}

// playTenantsOff: the engine refuses every poll. The worker says so in one clear line and asks seldom.
func playTenantsOff(f *fixture) result {
	return f.refusedTenants("INVALID_ARGUMENT", "multi-tenancy is off")
}

func playTenantDenied(f *fixture) result {
	return f.refusedTenants("PERMISSION_DENIED", "no access to tenant")
}

func (f *fixture) refusedTenants(code, says string) result {
	f.t.Helper()
	p := f.program("first", tenantsSet)
	f.until("seven polls of a type", func(gateway.Counts) bool { return len(f.Polls(worker.AnalyzeRetry)) >= 7 })
	const jobTypes = 5 // those that are kept among them
	lines := p.logged("engine does not answer polls", jobTypes)
	if len(lines) != jobTypes {
		f.t.Errorf("%d log lines tell of it, want one for each of %d job types", len(lines), jobTypes)
	}
	for _, line := range lines {
		if text, _ := line["error"].(string); !strings.Contains(text, says) || !strings.Contains(text, "hospital-a") || line["level"] != "warn" {
			f.t.Errorf("the log says %v, want a warning that names the tenant and why it is refused (%s)", line, code)
		}
	}
	p.signal(syscall.SIGTERM)
	p.ends(soonGone)
	f.claims(inHand)
	next := f.worker("next", func(c *setup) { c.TenantIDs = []string{gateway.DefaultTenant} })
	f.settled(inHand)
	next.leave()
	return f.result(0).soon(f.t, recovery).with("by a worker with other settings")
}
