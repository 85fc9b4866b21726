// Package config turns the environment into validated settings, or says everything that is wrong with
// it at once.
package config

import (
	"cmp"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"

	"retry-worker/internal/access"
	"retry-worker/internal/text"
	"retry-worker/internal/zeebe"
)

// Settings of one process, validated.
type Settings struct {
	HTTPAddr     string
	OpsAddr      string
	DatabaseURL  string
	PoliciesFile string // empty: the built-in catalogue
	// OperateURL and GrafanaURL are where people open those, without a slash at their ends; empty: nowhere.
	OperateURL, GrafanaURL string
	// ClaimURL is a claim's page in the hospital's own system, with {id} and {VARIABLE}s of its context; empty:
	// nowhere.
	ClaimURL        string
	AuthTokensFile  string           // empty: no tokens; then HTTPAddr is a loopback address, unless there is a Provider
	Provider        *access.Provider // that people log in by; nil: none
	EventsURL       string           // empty: off
	Retention       time.Duration    // of what the journal keeps
	MaxJobsActive   int
	JobTimeout      time.Duration
	Concurrency     int
	TenantIDs       []string
	WorkerName      string
	ShutdownTimeout time.Duration
	LogLevel        zapcore.Level
	LogFormat       string // json or console
	TLSCertFile     string // of the console and API; empty: no TLS
	TLSKeyFile      string
	Proxies         []netip.Prefix // before console and API
	Profiles        bool           // served at OpsAddr
	TraceProtocol   string         // by which traces are sent (TraceGRPC, TraceHTTP); empty: none are
	Engine          zeebe.Options
	Unread          []string // a hint for each name of the engine's clients that is set and that nobody reads
	Notify          Notify
}

// Problems is everything that is wrong with the environment, a line each.
type Problems []string

func (p Problems) Error() string { return strings.Join(p, "\n") }

// Load reads and checks the whole environment. Its error is Problems.
func Load() (Settings, error) {
	return read(func(c *checker, w *workerEnv) Settings {
		s := Settings{
			OperateURL:      c.publicURL("RETRY_WORKER_OPERATE_URL", w.OperateURL, "Operate"),
			GrafanaURL:      c.publicURL("RETRY_WORKER_GRAFANA_URL", w.GrafanaURL, "Grafana"),
			ClaimURL:        c.claimURL("RETRY_WORKER_CLAIM_URL", w.ClaimURL),
			HTTPAddr:        c.consoleAddress("RETRY_WORKER_HTTP_ADDR", w.HTTPAddr, w.AuthTokensFile+w.OidcIssuer),
			DatabaseURL:     c.journal(w),
			PoliciesFile:    w.PoliciesFile,
			AuthTokensFile:  w.AuthTokensFile,
			EventsURL:       c.secret("RETRY_WORKER_EVENTS_URL", w.EventsURL, "", w.EventsURLFile),
			Retention:       c.retention("RETRY_WORKER_RETENTION", w.Retention),
			OpsAddr:         c.address("RETRY_WORKER_OPS_ADDR", w.OpsAddr, "127.0.0.1:9095"),
			MaxJobsActive:   c.whole("RETRY_WORKER_MAX_JOBS_ACTIVE", w.MaxJobsActive, 1, 10_000),
			JobTimeout:      c.duration("RETRY_WORKER_JOB_TIMEOUT", w.JobTimeout, time.Second, time.Hour),
			Concurrency:     c.whole("RETRY_WORKER_CONCURRENCY", w.Concurrency, 1, 10_000),
			TenantIDs:       c.tenants(w),
			WorkerName:      cmp.Or(w.WorkerName, defaultWorkerName()),
			ShutdownTimeout: c.duration("RETRY_WORKER_SHUTDOWN_TIMEOUT", w.ShutdownTimeout, time.Second, time.Hour),
			LogLevel:        c.level("RETRY_WORKER_LOG_LEVEL", w.LogLevel),
			LogFormat:       c.oneOf("RETRY_WORKER_LOG_FORMAT", w.LogFormat, "json", "console"),
			Profiles:        c.boolean("RETRY_WORKER_PPROF", w.Pprof),
			Provider:        c.provider(w),
			Proxies:         c.networks("RETRY_WORKER_PROXIES", w.Proxies),
			TraceProtocol:   c.tracing(),
			Engine:          c.engine(w.Engine),
			Unread:          hints(),
			Notify:          c.notify(w),
		}
		if s.EventsURL != "" {
			c.url("RETRY_WORKER_EVENTS_URL", s.EventsURL, "nats://…", "nats", "tls")
		}
		s.TLSCertFile, s.TLSKeyFile = c.certificate(w)
		return s
	})
}

// read returns what part makes of the environment, in which no name may be unknown. Its error is Problems.
func read[T any](part func(c *checker, w *workerEnv) T) (T, error) {
	var c checker
	var w workerEnv
	c.load(workerPrefix, &w)
	v := part(&c, &w)
	c.unknown()
	if len(c.problems) > 0 {
		return *new(T), c.problems
	}
	return v, nil
}

// LoadEngine reads and checks only what the commands that speak to the engine need.
func LoadEngine() (engine zeebe.Options, tenants []string, err error) {
	engine, err = read(func(c *checker, w *workerEnv) zeebe.Options {
		tenants = c.tenants(w)
		return c.engine(w.Engine)
	})
	return engine, tenants, err
}

// OpsAddr returns the address of /readyz, for the health check.
func OpsAddr() (string, error) {
	return read(func(c *checker, w *workerEnv) string {
		return c.address("RETRY_WORKER_OPS_ADDR", w.OpsAddr, "127.0.0.1:9095")
	})
}

// DatabaseURL returns where the journal is, for the commands that read it.
func DatabaseURL() (string, error) { return read((*checker).journal) }

// Journal is what the commands that write the journal need. Events tells that somebody listens.
type Journal struct {
	DatabaseURL string
	Retention   time.Duration
	Events      bool
}

// LoadJournal reads and checks only what is in Journal.
func LoadJournal() (Journal, error) {
	return read(func(c *checker, w *workerEnv) Journal {
		return Journal{c.journal(w), c.retention("RETRY_WORKER_RETENTION", w.Retention),
			c.secret("RETRY_WORKER_EVENTS_URL", w.EventsURL, "", w.EventsURLFile) != ""}
	})
}

// Client returns what the commands that speak to the API need: where it listens, by RETRY_WORKER_HTTP_ADDR, whether by
// TLS, as RETRY_WORKER_TLS_CERT_FILE says, and the token to show, by RETRY_WORKER_TOKEN (empty: none).
func Client() (addr string, tls bool, token string, err error) {
	addr, err = read(func(c *checker, w *workerEnv) string {
		tls, token = w.TlsCertFile != "", w.Token
		return c.address("RETRY_WORKER_HTTP_ADDR", w.HTTPAddr, "127.0.0.1:8095")
	})
	return addr, tls, token, err
}

// PoliciesFile returns the catalogue that overrides the built-in one, for the commands that read policies; empty for
// none.
func PoliciesFile() (string, error) {
	return read(func(_ *checker, w *workerEnv) string { return w.PoliciesFile })
}

// unknown refuses names of ours that nothing reads.
func (c *checker) unknown() {
	for name, near := range unread(workerPrefix) {
		expected := "one of the names that `retry-worker serve --help` lists"
		if near != "" {
			expected += "; did you mean " + near + "?"
		}
		c.add(name, "set", expected)
	}
	slices.Sort(c.problems)
}

// hints tell of names of other clients of the engine that are set and that nobody reads, and what to set instead.
func hints() (all []string) {
	names := unread(zeebePrefix)
	maps.Copy(names, unread(camundaPrefix))
	for name, near := range names {
		instead := "`retry-worker serve --help` lists what is"
		switch {
		case os.Getenv(name) == "":
			continue
		case near != "":
			instead = "did you mean " + near + "?"
		case strings.Contains(name, "ADDRESS"), strings.Contains(name, "CONTACTPOINT"):
			instead = "the engine's address is ZEEBE_ADDRESS for gRPC, ZEEBE_REST_ADDRESS for REST"
		}
		all = append(all, name+" is set and not read; "+instead)
	}
	slices.Sort(all)
	return all
}

// unread returns the names with a prefix that are set and that nothing reads, each with the one that may be meant, but
// for those that Kubernetes injects for a Service.
func unread(prefix string) map[string]string {
	var known []string
	all, _ := Variables() // their form is ours, and cannot be wrong
	for _, v := range all {
		known = append(append(known, v.Name), v.Also...)
	}
	slices.Sort(known)
	meant := make(map[string]string)
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, prefix+"_") && !slices.Contains(known, name) && !serviceLink(name, value) {
			meant[name] = text.Nearest(name, known)
		}
	}
	return meant
}

func defaultWorkerName() string {
	host, err := os.Hostname()
	if err != nil {
		return "retry-worker"
	}
	return "retry-worker@" + host
}
