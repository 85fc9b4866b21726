package conformance_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
)

var variableRows = []row{
	{"a job sees all variables, and all it completes with reach the process", described, all, 0, func(p *play) {
		p.twoTasks()
		p.start(`{"a":1,"b":[true,null],"text":"ção \" <"}`)
		p.done(p.sees("a", `{"a":1,"b":[true,null],"text":"ção \" <"}`), `{"a":{"new":2},"c":3.5}`)
		p.sees("b", `{"a":{"new":2},"b":[true,null],"text":"ção \" <","c":3.5}`)
	}},
	{"whole numbers of 18 digits come as they went", assumed, all, 0, func(p *play) {
		p.oneTask()
		p.start(`{"n":123456789012345678}`)
		p.same("the variables", p.job("a").GetVariables(), `{"n":123456789012345678}`)
	}},
	{"input mappings: the task's own, in order, nested; what is missing is null", described, all, 0, func(p *play) {
		p.twoTasks(input("=customer.name", "who.name"), input("=missing", "nothing"),
			input("=customer.missing.deep", "deep"), input("=who.name", "again"))
		p.start(`{"customer":{"name":"Ana"}}`)
		job := p.sees("a", `{"customer":{"name":"Ana"},"who":{"name":"Ana"},"nothing":null,"deep":null,"again":"Ana"}`)
		p.done(job, "")
		p.sees("b", `{"customer":{"name":"Ana"}}`)
	}},
	{"output mappings: only what they name leaves the task", described, all, 0, func(p *play) {
		p.twoTasks(output("=result.status", "state"), output("=missing", "nothing"), output("=n", "deep.n"))
		p.start("")
		p.done(p.job("a"), `{"result":{"status":"ok"},"n":1,"lost":true}`)
		p.sees("b", `{"state":"ok","nothing":null,"deep":{"n":1}}`)
	}},
	{"retryCount mapped as an input alone: its new value never leaves the task", seen, all, 0, func(p *play) {
		p.twoTasks(input("=retryCount", "retryCount"))
		p.start(`{"retryCount":1}`)
		p.done(p.job("a"), `{"retryCount":2,"other":3}`)
		p.sees("b", `{"retryCount":1,"other":3}`)
	}},
	{"a value that the task has as its own already goes on to the process", seen, all, 0, func(p *play) {
		p.twoTasks(input("=5", "retryCount"))
		p.start(`{"retryCount":1}`)
		p.done(p.job("a"), `{"retryCount":5}`)
		p.sees("b", `{"retryCount":5}`)
	}},
	{"texts come without the escapes that they need not have", seen, all, 0, func(p *play) {
		p.oneTask()
		p.start(`{"text":"\u003cb\u003e \u00e9"}`)
		p.same("the variables", p.job("a").GetVariables(), `{"text":"<b> é"}`)
	}},
	{"SetVariables: for the instance, or local; once it ended NOT_FOUND", described, all, 0, func(p *play) {
		p.twoTasks()
		instance := p.start(`{"a":1}`)
		job := p.job("a")
		p.must(p.setVariables(instance, `{"a":2,"b":3}`, false))
		p.must(p.setVariables(job.GetElementInstanceKey(), `{"a":4,"local":5}`, true))
		p.done(job, "")
		p.refused("on the task", p.setVariables(job.GetElementInstanceKey(), `{"c":1}`, false), codes.NotFound)
		p.done(p.sees("b", `{"a":2,"b":3}`), "")
		p.ended(instance)
		p.refused("on the instance", p.setVariables(instance, `{"c":1}`, false), codes.NotFound)
	}},
	{"variables that are no object are INVALID_ARGUMENT to every command", described, all, 0, func(p *play) {
		p.oneTask()
		_, err := p.create(p.request(`[{"a":1}]`))
		p.refused("CreateProcessInstance", err, codes.InvalidArgument)
		instance := p.start("")
		key := p.job("a").GetKey()
		p.refused("Complete", p.complete(key, `"text"`), codes.InvalidArgument)
		p.refused("FailJob", p.fail(&pb.FailJobRequest{JobKey: key, Retries: 1, Variables: `1`}), codes.InvalidArgument)
		p.refused("ThrowError", p.throw(key, "E", `[]`), codes.InvalidArgument)
		p.refused("SetVariables", p.setVariables(instance, `[1]`, false), codes.InvalidArgument)
		_, err = p.publish(&pb.PublishMessageRequest{Name: p.id, CorrelationKey: "1", Variables: `true`})
		p.refused("PublishMessage", err, codes.InvalidArgument)
		if p.kind() == onGRPC {
			p.refused("no JSON", p.complete(key, `{"a":`), codes.InvalidArgument)
		}
		p.must(p.complete(key, ""))
	}},
	{"FEEL: values, comparisons, three-valued logic, decimals, if, contexts", described, all, 0, func(p *play) {
		expressions := slices.Sorted(maps.Keys(feel))
		var options []option
		for i, expression := range expressions {
			options = append(options, output("="+expression, fmt.Sprintf("r%d", i)))
		}
		p.process(element("intermediateThrowEvent", "t", options...), chain("start", "t", "end"))
		got := p.members(p.results(`{"a":{"b":{"c":1}},"n":5,"s":"text","yes":true,"none":null,"list":[1,2]}`))
		for i, expression := range expressions {
			p.sameJSON(expression, string(got[fmt.Sprintf("r%d", i)]), feel[expression])
		}
	}},
}

// feel are expressions and what they come to, in JSON.
var feel = map[string]string{
	`null`: `null`, `true`: `true`, `"a \"b\" ç"`: `"a \"b\" ç"`, `1.50`: `1.5`, `-3`: `-3`, `n`: `5`, `a.b.c`: `1`,
	`a.b`: `{"c":1}`, `missing`: `null`, `a.missing`: `null`, `missing.b`: `null`, `none`: `null`, `list`: `[1,2]`,

	`n = 5`: `true`, `n = 5.0`: `true`, `n != 5`: `false`, `s = "text"`: `true`, `n < 6`: `true`, `n <= 5`: `true`,
	`n > 5`: `false`, `n >= 5`: `true`, `yes = true`: `true`, `missing = null`: `true`, `none = null`: `true`,
	`n = null`: `false`, `n != null`: `true`, `missing != null`: `false`, `null = null`: `true`,

	`yes and n = 5`: `true`, `yes and n > 5`: `false`, `n > 5 or yes`: `true`, `not(yes)`: `false`, `not(n > 5)`: `true`,
	`true and null`: `null`, `false and null`: `false`, `true or null`: `true`, `false or null`: `null`,
	`missing and false`: `false`, `yes or n > 5 and n > 5`: `true`, `(yes or n > 5) and n > 5`: `false`,

	`n + 1`: `6`, `n - 7`: `-2`, `2 * 3 + 4`: `10`, `2 + 3 * 4`: `14`, `(2 + 3) * 4`: `20`, `7 / 2`: `3.5`,
	`10 - 3 - 2`: `5`, `0.1 + 0.2 = 0.3`: `true`, `1 / 0`: `null`, `n + missing`: `null`, `s + "s"`: `"texts"`,

	`if n > 4 then "more" else "less"`: `"more"`, `if n > 5 then "more" else "less"`: `"less"`,
	`if missing then 1 else 2`: `2`, `if missing > 1 then 1 else 2`: `2`,
	`if n = 1 then "a" else if n = 5 then "b" else "c"`:    `"b"`,
	`(if missing = null then 0 else missing) > 0 or n = 5`: `true`,

	`{}`: `{}`, `{x: 1, "y": n}`: `{"x":1,"y":5}`, `{x: {y: s}}.x.y`: `"text"`, `[]`: `[]`, `[1, "a", [n]]`: `[1,"a",[5]]`,
}

// fork deploys a process whose gateway leads to the tasks a and b by those conditions, and by default to otherwise.
func (p *play) fork(a, b, otherwise string) {
	p.Helper()
	parts := []part{
		exclusive("g", otherwise), task("a"), task("b"), chain("start", "g"), when("g", "a", a), when("g", "b", b),
		chain("a", "end"), chain("b", "end"),
	}
	if otherwise != "" {
		parts = append(parts, task(otherwise), chain("g", otherwise, "end"))
	}
	p.process(parts...)
}

// race deploys a process that waits for the message m of its key, then the task a, or for an hour, then the task b.
func (p *play) race() {
	p.Helper()
	p.process(element("eventBasedGateway", "g"), message("m", "=key"), timer("t", "timeDuration", "PT1H"), task("a"),
		task("b"), chain("start", "g", "m", "a", "end"), chain("g", "t", "b", "end"))
}

var gatewayRows = []row{
	{"exclusive gateway: the first condition that holds, else the default", described, all, 0, func(p *play) {
		p.fork("=n > 10", "=n > 5", "c")
		for n, to := range map[int]string{11: "a", 6: "b", 5: "c"} {
			p.start(fmt.Sprintf(`{"n":%d}`, n))
			p.job(to)
		}
		for _, to := range []string{"a", "b", "c"} {
			p.noJob(to)
		}
	}},
	{"exclusive gateway: joins, and leads back", described, all, 0, func(p *play) {
		p.process(exclusive("join", ""), task("a"), exclusive("g", "end"),
			chain("start", "join", "a", "g", "end"), when("g", "join", "=again"))
		instance := p.start("")
		p.done(p.job("a"), `{"again":true}`)
		p.done(p.job("a"), `{"again":false}`)
		p.ended(instance)
	}},
	{"no condition holds, no default: an incident; corrected, it goes on", described, all, records, func(p *play) {
		p.fork("=n > 10", "=n > 5", "")
		instance := p.start(`{"n":1}`)
		p.must(p.resolve(p.incident(instance, 0, "CONDITION_ERROR", "g").key))
		i := p.incident(instance, 1, "CONDITION_ERROR", "g") // nothing was corrected
		p.must(p.setVariables(instance, `{"n":7}`, false))
		p.noJob("b")
		p.must(p.resolve(i.key))
		p.done(p.job("b"), "")
		p.ended(instance)
	}},
	{"a condition that is neither true nor false is an incident", described, all, 0, func(p *play) {
		p.fork("=missing > 10", "=true", "c")
		instance := p.start("")
		p.incident(instance, 0, "EXTRACT_VALUE_ERROR", "g")
		p.noJob("b")
		p.noJob("c")
		p.running(instance)
	}},
	{"event-based gateway: the message comes first, the timer never fires", described, all, clock, func(p *play) {
		p.race()
		instance := p.start(`{"key":"1"}`)
		p.sends("m", "1", time.Minute, `{"by":"message"}`)
		p.sees("a", `{"key":"1","by":"message"}`)
		p.later(2 * time.Hour)
		p.noJob("b")
		p.running(instance)
	}},
	{"event-based gateway: the timer fires first, the message is nobody's", described, all, clock, func(p *play) {
		p.race()
		instance := p.start(`{"key":"1"}`)
		p.later(2 * time.Hour)
		job := p.job("b")
		p.sends("m", "1", 0, "")
		p.noJob("a")
		p.done(job, "")
		p.ended(instance)
	}},
}

// timed deploys a process of a timer before the task a.
func (p *play) timed(kind, value string) {
	p.Helper()
	p.process(timer("t", kind, value), task("a"), chain("start", "t", "a", "end"))
}

// at is the variable t of that text.
func at(text string) string { return fmt.Sprintf(`{"t":%q}`, text) }

var timerRows = []row{
	{"timeDate, by a variable in UTC (RFC 3339): fires then, not before", seen, all, clock, func(p *play) {
		p.timed("timeDate", "=t")
		p.start(at(p.later(0).Add(time.Hour).UTC().Format(time.RFC3339Nano)))
		p.later(59 * time.Minute)
		p.noJob("a")
		p.later(2 * time.Minute)
		p.job("a")
	}},
	{"timeDate, fixed and with an offset", described, all, clock, func(p *play) {
		p.timed("timeDate", p.later(0).Add(time.Hour).In(time.FixedZone("", -3*3600)).Format(time.RFC3339))
		p.start("")
		p.later(58 * time.Minute)
		p.noJob("a")
		p.later(3 * time.Minute)
		p.job("a")
	}},
	{"timeDate with the name of a zone, or of no day, never fires", seen, all, clock, func(p *play) {
		p.timed("timeDate", "=t")
		year := p.later(0).Year() + 1
		var instances []int64
		for _, text := range []string{
			"-01-02T10:00:00@Europe/Berlin", "-01-02T10:00:00+01:00[Europe/Berlin]",
			"-02-30T10:00:00Z", "-13-01T10:00:00Z", "-01-02T25:00:00Z",
		} {
			instances = append(instances, p.start(at(fmt.Sprint(year)+text)))
		}
		p.later(800 * 24 * time.Hour)
		p.noJob("a")
		for _, instance := range instances {
			p.running(instance)
		}
	}},
	{"timeDate that is none: an incident; corrected, it goes on", seen, all, records, func(p *play) {
		p.timed("timeDate", "=t")
		for _, variables := range []string{at("2026-02-30T10:00:00Z"), `{"t":7}`, `{}`} {
			instance := p.start(variables)
			i := p.incident(instance, 0, "EXTRACT_VALUE_ERROR", "t")
			p.must(p.setVariables(instance, at("2020-01-02T03:04:05Z"), false))
			p.must(p.resolve(i.key))
			p.done(p.job("a"), "")
			p.ended(instance)
		}
	}},
	{"timeDuration, fixed and by a variable: fires then, not before", described, all, clock, func(p *play) {
		p.process(timer("t", "timeDuration", "PT1H30M"), timer("u", "timeDuration", "=d"), task("a"),
			chain("start", "t", "u", "a", "end"))
		p.start(`{"d":"P1DT1.5S"}`)
		p.later(91 * time.Minute)
		p.later(23 * time.Hour)
		p.noJob("a")
		p.later(2 * time.Hour)
		p.job("a")
	}},
	{"timeDuration of nothing and timeDate in the past fire at once", described, all, 0, func(p *play) {
		p.process(timer("t", "timeDuration", "=d"), timer("u", "timeDate", "=t"), task("a"),
			chain("start", "t", "u", "a", "end"))
		p.start(`{"d":"PT0S","t":"2020-01-02T03:04:05Z"}`)
		p.job("a")
	}},
}

// waits deploys a process of the message m of its key before the task a.
func (p *play) waits(options ...option) {
	p.Helper()
	p.process(message("m", "=key", options...), task("a"), chain("start", "m", "a", "end"))
}

var messageRows = []row{
	{"a message to nobody is OK; with TTL 0 it is lost before its event waits", seen, all, 0, func(p *play) {
		p.waits()
		p.sends("m", "1", 0, "")
		instance := p.start(`{"key":"1"}`)
		p.noJob("a")
		p.running(instance)
		p.sends("m", "1", time.Minute, "")
		p.job("a")
	}},
	{"a message with a TTL waits that long for its event", described, all, clock, func(p *play) {
		p.waits()
		p.sends("m", "1", time.Hour, `{"by":1}`)
		p.later(50 * time.Minute)
		p.start(`{"key":"1"}`)
		p.sees("a", `{"key":"1","by":1}`)
		p.sends("m", "2", time.Hour, "")
		p.later(70 * time.Minute)
		instance := p.start(`{"key":"2"}`)
		p.noJob("a")
		p.running(instance)
	}},
	{"a message goes by its name and its key, which may be a number", described, all, 0, func(p *play) {
		p.waits()
		other, mine := p.start(`{"key":"8"}`), p.start(`{"key":7}`)
		p.sends("other", "7", 0, "")
		p.sends("m", "9", 0, "")
		p.noJob("a")
		p.sends("m", "7", time.Minute, "")
		p.same("instance", p.job("a").GetProcessInstanceKey(), mine)
		p.noJob("a")
		p.running(other)
	}},
	{"a message goes to one instance of a process; the first one first", described, all, 0, func(p *play) {
		p.waits()
		p.start(`{"key":"1"}`)
		p.start(`{"key":"1"}`)
		p.sends("m", "1", time.Minute, "")
		p.job("a")
		p.noJob("a")
		for n := range 2 {
			p.sends("m", "2", time.Hour, fmt.Sprintf(`{"n":%d}`, n))
		}
		for n := range 2 {
			p.start(`{"key":"2"}`)
			p.sees("a", fmt.Sprintf(`{"key":"2","n":%d}`, n))
		}
	}},
	{"a message's output mappings: only what they name reaches the process", described, all, 0, func(p *play) {
		p.waits(output("=answer.text", "said"))
		p.start(`{"key":"1"}`)
		p.sends("m", "1", time.Minute, `{"answer":{"text":"yes"},"lost":1}`)
		p.sees("a", `{"key":"1","said":"yes"}`)
	}},
	{"a message's id again while the first waits: ALREADY_EXISTS", described, all, 0, func(p *play) {
		r := &pb.PublishMessageRequest{Name: p.id, CorrelationKey: "1", MessageId: "id", TimeToLive: time.Hour.Milliseconds()}
		key, err := p.publish(r)
		p.must(err)
		if key < firstKey {
			p.Errorf("the message's key is %d", key)
		}
		_, err = p.publish(r)
		p.refused("the second", err, codes.AlreadyExists)
		r.CorrelationKey = "2"
		_, err = p.publish(r)
		p.must(err)
	}},
	{"a correlation key that is neither text nor a number is an incident", described, all, 0, func(p *play) {
		p.waits()
		instance := p.start("")
		p.incident(instance, 0, "EXTRACT_VALUE_ERROR", "m")
		p.running(instance)
	}},
}
