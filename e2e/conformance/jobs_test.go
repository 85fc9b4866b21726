package conformance_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
)

// firstKey is the first of the keys of partition 1.
const firstKey = 1 << 51

// oneTask deploys a process of the task a.
func (p *play) oneTask(options ...option) *pb.ProcessMetadata {
	p.Helper()
	return p.process(task("a", options...), chain("start", "a", "end"))
}

// twoTasks deploys a process of the tasks a and b, the second of which sees what the first left.
func (p *play) twoTasks(options ...option) {
	p.Helper()
	p.process(task("a", options...), task("b"), chain("start", "a", "b", "end"))
}

// caught deploys a process of the task a, whose error E leads to the task b.
func (p *play) caught(options ...option) {
	p.Helper()
	p.process(task("a"), boundary("e", "a", "E", options...), task("b"),
		chain("start", "a", "end"), chain("e", "b", "end"))
}

var jobRows = []row{
	{"at least once: delivered again after the time-out, which leaves the retries", seen, all, clock, func(p *play) {
		p.process(typedTask("a", p.id+"-a", `retries="5"`), chain("start", "a", "end"))
		p.start("")
		job := p.jobFor("a", time.Minute)
		p.noJob("a")
		p.later(2 * time.Minute)
		p.again(job, 5)
	}},
	{"Complete after the time-out is taken while nobody else did, even after 26 h", seen, all, clock, func(p *play) {
		p.oneTask()
		instance := p.start("")
		job := p.jobFor("a", time.Minute)
		p.later(26 * time.Hour)
		p.done(job, "")
		p.ended(instance)
	}},
	{"A is late, B holds the job: the first completion wins, then NOT_FOUND", seen, all, clock, func(p *play) {
		p.twoTasks()
		for _, first := range []string{"A", "B"} {
			p.start("")
			a := p.jobFor("a", time.Minute)
			p.later(2 * time.Minute)
			b := p.job("a")
			if first == "B" {
				a, b = b, a
			}
			p.done(a, fmt.Sprintf(`{"by":%q}`, first))
			p.refused("the other's completion", p.complete(b.GetKey(), `{"by":"other"}`), codes.NotFound)
			p.sees("b", fmt.Sprintf(`{"by":%q}`, first))
		}
	}},
	{"a job held for 24 h is nobody else's, and completes by its key hours later", seen, all, clock, func(p *play) {
		p.oneTask()
		instance := p.start("")
		job := p.jobFor("a", 24*time.Hour)
		p.later(23 * time.Hour)
		p.noJob("a")
		p.done(job, "")
		p.ended(instance)
	}},
	{"after its instance was cancelled a job is NOT_FOUND", seen, all, 0, func(p *play) {
		p.oneTask()
		instance := p.start("")
		job := p.job("a")
		p.must(p.cancel(instance))
		p.ended(instance)
		p.refused("Complete", p.complete(job.GetKey(), ""), codes.NotFound)
		p.refused("FailJob", p.fails(job, 1, 0), codes.NotFound)
	}},
	{"a completed job is NOT_FOUND to every command", seen, all, 0, func(p *play) {
		p.oneTask()
		p.start("")
		job := p.job("a")
		p.done(job, "")
		p.refused("Complete", p.complete(job.GetKey(), ""), codes.NotFound)
		p.refused("FailJob", p.fails(job, 1, 0), codes.NotFound)
		p.refused("ThrowError", p.throw(job.GetKey(), "E", ""), codes.NotFound)
		p.refused("UpdateJobTimeout", p.updateTimeout(job.GetKey(), time.Second), codes.NotFound)
		p.refused("UpdateJobRetries", p.updateRetries(job.GetKey(), 1), codes.NotFound)
	}},
	{"FailJob with retries and no back-off: given to a poll that waits", seen, all, 0, func(p *play) {
		p.oneTask()
		p.start("")
		job := p.job("a")
		next := p.waiting("a", longPoll)
		p.must(p.fails(job, 7, 0))
		p.isAgain(next(), job, 7)
	}},
	{"fail back-off: not given before; Complete is FAILED_PRECONDITION", seen, all, clock, func(p *play) {
		p.oneTask()
		p.start("")
		job := p.job("a")
		p.must(p.fails(job, 2, 10*time.Minute))
		p.noJob("a")
		p.refused("Complete", p.complete(job.GetKey(), ""), codes.FailedPrecondition)
		p.refused("FailJob", p.fails(job, 1, 0), codes.FailedPrecondition)
		p.later(9 * time.Minute)
		p.noJob("a")
		p.later(2 * time.Minute)
		p.again(job, 2)
	}},
	{"FailJob and ThrowError after the time-out are taken, too", described, all, clock, func(p *play) { // camunda#3999
		p.caught()
		p.start("")
		job := p.jobFor("a", time.Minute)
		p.later(2 * time.Minute)
		p.must(p.fails(job, 2, 0))
		p.isAgain(p.jobFor("a", time.Minute), job, 2)
		p.later(2 * time.Minute)
		p.must(p.throw(job.GetKey(), "E", ""))
		p.job("b")
	}},
	{"FailJob with retries 0: an incident; Complete is FAILED_PRECONDITION", seen, all, 0, func(p *play) {
		p.oneTask()
		instance := p.start("")
		job := p.job("a")
		p.must(p.fails(job, 0, 0))
		p.incident(instance, 0, "JOB_NO_RETRIES", "a")
		p.noJob("a")
		p.refused("Complete", p.complete(job.GetKey(), ""), codes.FailedPrecondition)
		p.refused("FailJob", p.fails(job, 1, 0), codes.FailedPrecondition)
		p.running(instance)
	}},
	{"error messages are cut at 10,000 characters", seen, all, records, func(p *play) {
		p.oneTask()
		instance := p.start("")
		long := strings.Repeat("x", 20_000)
		p.must(p.fail(&pb.FailJobRequest{JobKey: p.job("a").GetKey(), ErrorMessage: long}))
		got := p.incident(instance, 0, "JOB_NO_RETRIES", "a").ErrorMessage
		if n := len(got); n < 9_990 || n > 10_003 || !strings.HasPrefix(long, got[:9_990]) { // an ellipsis may end it
			p.Errorf("the message has %d characters, want the first 10,000", n)
		}
	}},
	{"retries, and then the incident resolved: the job is given again", described, all, records, func(p *play) {
		p.oneTask()
		instance := p.start("")
		job := p.job("a")
		p.must(p.fails(job, 0, 0))
		i := p.incident(instance, 0, "JOB_NO_RETRIES", "a")
		p.same("the incident's job", i.JobKey, job.GetKey())
		p.must(p.updateRetries(job.GetKey(), 3))
		p.noJob("a")
		p.must(p.resolve(i.key))
		p.again(job, 3)
		p.refused("resolved twice", p.resolve(i.key), codes.NotFound)
		p.done(job, "")
		p.ended(instance)
	}},
	{"FailJob's variables stay local to the task", seen, all, 0, func(p *play) {
		p.twoTasks()
		p.start("")
		p.must(p.fail(&pb.FailJobRequest{JobKey: p.job("a").GetKey(), Retries: 1, Variables: `{"part":2}`}))
		p.done(p.sees("a", `{"part":2}`), "")
		p.sees("b", `{}`)
	}},
	{"UpdateJobTimeout to 1 ms: given again soon, with its retries", seen, all, 0, func(p *play) {
		p.oneTask()
		p.start("")
		job := p.job("a")
		next := p.waiting("a", longPoll)
		p.must(p.updateTimeout(job.GetKey(), time.Millisecond))
		p.isAgain(next(), job, 3)
	}},
	{"UpdateJobTimeout counts from now, and lengthens too", described, all, clock, func(p *play) {
		p.oneTask()
		p.start("")
		job := p.jobFor("a", time.Minute)
		p.must(p.updateTimeout(job.GetKey(), time.Hour))
		p.later(50 * time.Minute)
		p.noJob("a")
		p.later(20 * time.Minute)
		p.again(job, 3)
	}},
	{"UpdateJobTimeout of a job that is not active is refused, over REST by 400", seen, onGRPC | rest86, 0, func(p *play) {
		p.oneTask()
		p.start("")
		job := p.job("a")
		p.must(p.fails(job, 0, 0))
		want := map[doors]codes.Code{onGRPC: codes.FailedPrecondition, rest86: codes.InvalidArgument}[p.kind()]
		p.refused("UpdateJobTimeout", p.updateTimeout(job.GetKey(), time.Second), want)
	}},
	{"UpdateJobRetries: greater than 0, and seen at the next delivery", described, all, 0, func(p *play) {
		p.oneTask()
		p.start("")
		job := p.job("a")
		p.refused("retries 0", p.updateRetries(job.GetKey(), 0), codes.InvalidArgument)
		p.must(p.updateRetries(job.GetKey(), 9))
		p.must(p.updateTimeout(job.GetKey(), time.Millisecond))
		p.again(job, 9)
	}},
	{"a long poll is answered at once when a job appears", seen, all, 0, func(p *play) {
		began, next := time.Now(), p.waiting("a", longPoll)
		p.oneTask()
		instance := p.start("")
		p.same("instance", next().GetProcessInstanceKey(), instance)
		if took := time.Since(began); took > longPoll/2 {
			p.Errorf("answered after %v", took)
		}
	}},
	{"requestTimeout: below 0 answers at once, 0 waits; in vain is no error", described, all, 0, func(p *play) {
		p.oneTask()
		began := time.Now()
		p.noJob("a")
		if took := time.Since(began); took > longPoll/2 {
			p.Errorf("answered after %v", took)
		}
		jobs, err := p.activate(p.poll("a", 20*time.Millisecond, held))
		p.must(err)
		p.same("jobs", len(jobs), 0)
		next := p.waiting("a", 0)
		p.start("")
		next()
	}},
	{"ActivateJobs without type, time-out or number of jobs: INVALID_ARGUMENT", described, all, 0, func(p *play) {
		bad := map[string]func(*pb.ActivateJobsRequest){
			"no type":             func(r *pb.ActivateJobsRequest) { r.Type = "" },
			"time-out 0":          func(r *pb.ActivateJobsRequest) { r.Timeout = 0 },
			"a negative time-out": func(r *pb.ActivateJobsRequest) { r.Timeout = -1 },
			"no jobs":             func(r *pb.ActivateJobsRequest) { r.MaxJobsToActivate = 0 },
			"fewer than no jobs":  func(r *pb.ActivateJobsRequest) { r.MaxJobsToActivate = -1 },
		}
		for what, spoil := range bad {
			r := p.poll("a", -time.Millisecond, held)
			spoil(r)
			_, err := p.activate(r)
			p.refused(what, err, codes.InvalidArgument)
		}
	}},
	{"a poll gets no more jobs than it asks for, and each job goes to one poll", described, all, 0, func(p *play) {
		p.oneTask()
		p.drain(5, "", 2, 2)
	}},
	{"a batch is bounded by what a client takes (4 MB), and all jobs come", described, all, 0, func(p *play) {
		p.oneTask()
		const size = 700_000
		most := 4 << 20 / size
		if p.kind() == onGRPC {
			most = 10 // in several messages; the client itself refuses a larger one
		}
		p.drain(10, fmt.Sprintf(`{"large":%q}`, strings.Repeat("x", size)), 10, most)
	}},
	{"fetchVariable: only those come", described, all, 0, func(p *play) {
		p.oneTask()
		p.start(`{"a":1,"b":{"c":2},"d":3}`)
		r := p.poll("a", longPoll, held)
		r.FetchVariable = []string{"b", "missing"}
		p.sameJSON("variables", p.only(p.activate(r)).GetVariables(), `{"b":{"c":2}}`)
	}},
	{"a job says whose it is; keys name the partition", described, all, 0, func(p *play) {
		deployed := p.oneTask()
		instance := p.start("")
		job := p.job("a")
		p.same("the job", []any{
			job.GetType(), job.GetWorker(), job.GetElementId(), job.GetTenantId(), job.GetRetries(), job.GetBpmnProcessId(),
			job.GetProcessDefinitionVersion(), job.GetProcessDefinitionKey(), job.GetProcessInstanceKey(),
		}, []any{
			p.id + "-a", "conformance", "a", "<default>", int32(3), p.id, int32(1), deployed.GetProcessDefinitionKey(), instance,
		})
		for _, key := range []int64{instance, job.GetKey(), job.GetElementInstanceKey(), job.GetProcessDefinitionKey()} {
			if key < firstKey {
				p.Errorf("the key %d is below those of partition 1", key)
			}
		}
	}},
	{"a job's deadline is on the engine's clock", seen, all, clock, func(p *play) {
		p.oneTask()
		p.start("")
		then := p.later(time.Hour)
		got := time.UnixMilli(p.jobFor("a", time.Minute).GetDeadline())
		if got.Before(then.Add(time.Minute)) || got.After(p.later(0).Add(time.Minute)) {
			p.Errorf("activated a little after %v for a minute, the deadline is %v", then, got)
		}
	}},
	{"type and retries may be expressions; headers come as they are modelled", described, all, 0, func(p *play) {
		p.process(typedTask("a", fmt.Sprintf(`="%s-"+kind`, p.id), `retries="=tries"`,
			header("policy", "x"), header("número", `"ä"`)), chain("start", "a", "end"))
		p.start(`{"kind":"b","tries":11}`)
		job := p.job("b")
		p.same("retries", job.GetRetries(), int32(11))
		p.sameJSON("headers", job.GetCustomHeaders(), `{"policy":"x","número":"\"ä\""}`)
	}},
	{"tenants but <default> are INVALID_ARGUMENT where there are none", seen, all, 0, func(p *play) {
		p.oneTask()
		p.start("")
		poll := p.poll("a", longPoll, held)
		poll.TenantIds = []string{"a"}
		_, err := p.activate(poll)
		p.refused("ActivateJobs", err, codes.InvalidArgument)
		request := p.request("")
		request.TenantId = "a"
		_, err = p.create(request)
		p.refused("CreateProcessInstance", err, codes.InvalidArgument)
		_, err = p.deploy("a", file("model.bpmn", newProcess(p.id, chain("start", "end"))))
		p.refused("DeployResource", err, codes.InvalidArgument)
		poll.TenantIds = []string{"<default>"}
		p.only(p.activate(poll))
	}},
}

// drain starts n instances and takes their jobs by polls that ask for some and must get no more than most at once.
func (p *play) drain(n int, variables string, ask int32, most int) {
	p.Helper()
	for range n {
		p.start(variables)
	}
	got := map[int64]bool{}
	for given := 0; given < n; {
		r := p.poll("a", longPoll, held)
		r.MaxJobsToActivate = ask
		jobs, err := p.activate(r)
		p.must(err)
		if given += len(jobs); len(jobs) == 0 || len(jobs) > most {
			p.Fatalf("%d jobs came at once, want 1 to %d", len(jobs), most)
		}
		for _, job := range jobs {
			got[job.GetKey()] = true
		}
	}
	p.same("different jobs", len(got), n)
	p.noJob("a")
}

var errorRows = []row{
	{"ThrowError: the boundary event goes on; unmapped variables are gone", seen, all, 0, func(p *play) {
		p.caught()
		instance := p.start(`{"kept":1}`)
		job := p.job("a")
		p.must(p.throw(job.GetKey(), "E", `{"lost":true,"kept":2}`))
		p.refused("Complete", p.complete(job.GetKey(), ""), codes.NotFound)
		p.done(p.sees("b", `{"kept":1}`), "")
		p.ended(instance)
	}},
	{"ThrowError: what the boundary event maps reaches the process, no more", seen, all, 0, func(p *play) {
		p.caught(output("=reason", "why"), output("=missing", "nothing"))
		p.start("")
		p.must(p.throw(p.job("a").GetKey(), "E", `{"reason":"closed","lost":true}`))
		p.sees("b", `{"why":"closed","nothing":null}`)
	}},
	{"SetVariables on the task, not local, before ThrowError: seen afterwards", seen, all, 0, func(p *play) {
		p.caught()
		p.start("")
		job := p.job("a")
		p.must(p.setVariables(job.GetElementInstanceKey(), `{"reason":"closed"}`, false))
		p.must(p.throw(job.GetKey(), "E", ""))
		p.sees("b", `{"reason":"closed"}`)
	}},
	{"an error nobody catches: an incident; Complete is FAILED_PRECONDITION", seen, all, 0, func(p *play) {
		p.caught()
		instance := p.start("")
		job := p.job("a")
		p.must(p.throw(job.GetKey(), "OTHER", ""))
		p.incident(instance, 0, "UNHANDLED_ERROR_EVENT", "a")
		p.noJob("a")
		p.noJob("b")
		p.refused("Complete", p.complete(job.GetKey(), ""), codes.FailedPrecondition)
		p.refused("ThrowError", p.throw(job.GetKey(), "E", ""), codes.FailedPrecondition)
		p.running(instance)
	}},
	{"an error nobody catches, resolved: the job is given again", described, all, records, func(p *play) {
		p.caught()
		instance := p.start("")
		job := p.job("a")
		p.must(p.throw(job.GetKey(), "OTHER", ""))
		p.must(p.resolve(p.incident(instance, 0, "UNHANDLED_ERROR_EVENT", "a").key))
		p.again(job, 3)
		p.done(job, "")
		p.ended(instance)
	}},
	{"a boundary event without a code catches all; one with it goes first", described, all, 0, func(p *play) {
		p.process(task("a"), boundary("every", "a", ""), boundary("one", "a", "E"), task("b"), task("c"),
			chain("start", "a", "end"), chain("every", "b", "end"), chain("one", "c", "end"))
		for code, to := range map[string]string{"E": "c", "OTHER": "b"} {
			p.start("")
			p.must(p.throw(p.job("a").GetKey(), code, ""))
			p.job(to)
		}
	}},
	{"an error end event nobody catches: an incident, and the instance stays", described, all, 0, func(p *play) {
		p.process(task("a"), errorEnd("wrong", "E"), chain("start", "a", "wrong"))
		instance := p.start("")
		p.done(p.job("a"), "")
		p.incident(instance, 0, "UNHANDLED_ERROR_EVENT", "wrong")
		p.running(instance)
	}},
}
