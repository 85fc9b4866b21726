// Package gatewaytest is a stub Zeebe gateway for tests and benchmarks: a
// small, faithful engine for jobs, and a gRPC server before it that speaks the
// gateway protocol on a loopback port.
//
// [Engine] holds the behaviour and works on values: jobs, time-outs, back-offs,
// incidents, long polling, the faults of [Fault], and a journal of all that
// happened. It starts no goroutine of its own and takes its time from
// [time.Now] and timers only, so inside a testing/synctest bubble it runs on
// the bubble's clock. [Start] puts an engine behind a socket, where a worker
// process can reach it and where the faults of a network can be played: no
// listener, a frozen one, dropped connections, TLS, tokens. [StartIDP] is the
// token endpoint that goes with it.
//
// What it answers follows what the project saw on real brokers 8.5.8 and 8.6.0
// ("Engine semantics" of the platform facts); where that is silent, what the
// protocol's own comments say of each RPC. Taken from neither, and not tried on
// a broker: that Fail and Throw, like Complete, are accepted of a job nobody
// holds (so the engine's published source reads), the codes for tenants where
// multi-tenancy is on, the bounds of 4 MB and the keep-alive of 30 s. Mistakes
// of a test (a job that is no JSON, a fault that contradicts itself) panic with
// a sentence, as in net/http/httptest.
package gatewaytest
