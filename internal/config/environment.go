package config

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/kelseyhightower/envconfig"

	"retry-worker/internal/smallfile"
)

const (
	workerPrefix  = "RETRY_WORKER"
	zeebePrefix   = "ZEEBE"
	camundaPrefix = "CAMUNDA"
)

// workerEnv is the environment as it came: text, so that everything wrong can be said at once.
// Names, defaults and descriptions stand here and nowhere else; a group goes on until the next begins.
type workerEnv struct {
	HTTPAddr             string `group:"Console and API" split_words:"true" default:"127.0.0.1:8095" desc:"console and API: host:port; loopback only without a tokens file"`
	PublicURL            string `split_words:"true" desc:"where people open the console, for links in messages: https://…; empty: no links"`
	OperateURL           string `split_words:"true" desc:"where people open Camunda's Operate, for links to process instances: https://…; empty: no links"`
	GrafanaURL           string `split_words:"true" desc:"where people open the Grafana board, for a link from the overview: https://…/d/…; empty: no link"`
	ClaimURL             string `split_words:"true" desc:"a claim's page in the hospital's own system, for a link: https://…/{id}, or with {VARIABLE}s of its context; empty: no link"`
	AuthTokensFile       string `split_words:"true" desc:"who may use console and API (retry-worker token new), taken up again when it changes; empty: everybody on this machine"`
	OidcIssuer           string `split_words:"true" desc:"OpenID provider that people log in by: https://…; empty: none"`
	OidcClientID         string `split_words:"true" desc:"id of the provider's client; its redirect address is …/login/callback"`
	OidcClientSecretFile string `split_words:"true" desc:"file with the client's secret, which signs the sessions too"`
	OidcRoleClaim        string `split_words:"true" default:"roles" desc:"claim that holds viewer, operator or admin; dots lead into objects: realm_access.roles"`
	OidcTeamClaim        string `split_words:"true" desc:"claim that holds a person's teams; empty: the provider binds nobody to teams"`
	TlsCertFile          string `split_words:"true" desc:"PEM file with the certificate of console and API, taken up again when it changes; empty: no TLS"` //nolint:revive // envconfig makes TLS_… of it
	TlsKeyFile           string `split_words:"true" desc:"PEM file with the certificate's key"`                                                             //nolint:revive // envconfig makes TLS_… of it
	Proxies              string `split_words:"true" desc:"reverse proxies before console and API, networks or addresses, comma-separated: their X-Forwarded-For is believed"`
	Token                string `split_words:"true" desc:"token that the other commands show to the API; serve does not read it"`
	PoliciesFile         string `group:"Jobs and policies" split_words:"true" desc:"policy catalogue (YAML), taken up again when it changes; empty: the built-in one"`
	Engine               string `split_words:"true" default:"auto" desc:"grpc, rest, or auto: REST where ZEEBE_REST_ADDRESS is set, else gRPC"`
	MaxJobsActive        string `split_words:"true" default:"50" desc:"jobs held per job type, 1 to 10000"`
	JobTimeout           string `split_words:"true" default:"10s" desc:"time to answer a job, 1s to 1h"`
	Concurrency          string `split_words:"true" default:"50" desc:"jobs handled at once, all types together, 1 to 10000"`
	TenantIds            string `split_words:"true" desc:"tenants to take jobs from, comma-separated; empty: the engine's default"` //nolint:revive // envconfig makes TENANT_IDS of it
	WorkerName           string `split_words:"true" desc:"name shown by the engine; empty: retry-worker@HOSTNAME"`
	ShutdownTimeout      string `split_words:"true" default:"25s" desc:"time for a stop, 1s to 1h"`
	DatabaseURL          string `group:"Journal and events" split_words:"true" default:"sqlite:retry-worker.db" desc:"journal: sqlite:FILE or postgres://USER@HOST/DATABASE"`
	DatabaseURLFile      string `split_words:"true" desc:"file with RETRY_WORKER_DATABASE_URL, which may hold a password"`
	Retention            string `split_words:"true" default:"5y" desc:"how long records are kept: 5y, 90d or 48h"`
	EventsURL            string `split_words:"true" desc:"NATS server with JetStream for events, nats://…; empty: off"`
	EventsURLFile        string `split_words:"true" desc:"file with RETRY_WORKER_EVENTS_URL, which may hold a password"`
	SmtpURL              string `group:"Messages to teams" split_words:"true" desc:"mail server for what teams are told: smtp://USER@HOST:587 (STARTTLS) or smtps://USER@HOST:465; empty: no e-mail"` //nolint:revive // envconfig makes SMTP_… of it
	SmtpPasswordFile     string `split_words:"true" desc:"file with the password of the mail server's user, read for each connection"`                                                                //nolint:revive // envconfig makes SMTP_… of it
	SmtpCaFile           string `split_words:"true" desc:"PEM file to trust for the mail server instead of the system's authorities"`                                                                 //nolint:revive // envconfig makes SMTP_… of it
	MailFrom             string `split_words:"true" desc:"address that e-mail comes from, such as retry-worker@hospital.example"`
	NotifyInterval       string `split_words:"true" default:"15m" desc:"least time between two messages to a team about new dead letters, 1s to 24h"`
	DigestTime           string `split_words:"true" default:"07:00" desc:"time of day of the digest: HH:MM"`
	TimeZone             string `split_words:"true" default:"America/Sao_Paulo" desc:"time zone of the digest, and of times in messages and in the console"`
	WebhookAllow         string `split_words:"true" desc:"addresses beside public ones that webhooks and probes of destinations may go to: networks, addresses or host names, comma-separated"`
	OpsAddr              string `group:"Operation" split_words:"true" default:"127.0.0.1:9095" desc:"/metrics, /livez and /readyz: host:port"`
	LogLevel             string `split_words:"true" default:"info" desc:"debug, info, warn or error"`
	LogFormat            string `split_words:"true" default:"json" desc:"json or console"`
	Pprof                string `split_words:"true" default:"false" desc:"true: profiles of the process under /debug/pprof/ of RETRY_WORKER_OPS_ADDR"`
}

// zeebeEnv are the names that the Zeebe clients share, each with the names of the Camunda SDKs that mean the same.
type zeebeEnv struct {
	Address                string `group:"Engine" split_words:"true" also:"ZEEBE_GRPC_ADDRESS CAMUNDA_GRPC_ADDRESS" default:"127.0.0.1:26500" desc:"gateway: host:port; grpc:// or http:// before it: no TLS, grpcs:// or https://: TLS"`
	RestAddress            string `split_words:"true" also:"CAMUNDA_REST_ADDRESS" desc:"URL that the REST API's /v2 is below, of engines from 8.6: http://HOST:8080 or https://…"`
	Host                   string `split_words:"true" desc:"gateway host; beats ZEEBE_ADDRESS, as in the Zeebe clients"`
	Port                   string `split_words:"true" desc:"gateway port; beats ZEEBE_ADDRESS; values such as tcp://… (service links) are ignored"`
	InsecureConnection     string `split_words:"true" desc:"true: no TLS for gRPC; an address with a scheme says it by itself"`
	CACertificatePath      string `split_words:"true" also:"CAMUNDA_MTLS_CA_PATH" desc:"PEM file to trust instead of the system's authorities"`
	OverrideAuthority      string `split_words:"true" desc:"name to check the gateway's certificate against"`
	KeepAlive              string `split_words:"true" default:"45000" desc:"milliseconds between two pings, at least 10000"`
	ClientID               string `split_words:"true" also:"CAMUNDA_CLIENT_ID" desc:"OAuth client id; empty: no token is sent"`
	ClientSecret           string `split_words:"true" also:"CAMUNDA_CLIENT_SECRET" desc:"OAuth client secret"`
	ClientSecretFile       string `split_words:"true" desc:"file with ZEEBE_CLIENT_SECRET"`
	TokenAudience          string `split_words:"true" also:"CAMUNDA_TOKEN_AUDIENCE" desc:"audience of the token; empty: the gateway's host"`
	TokenScope             string `split_words:"true" also:"CAMUNDA_TOKEN_SCOPE CAMUNDA_OAUTH_SCOPE" desc:"scope of the token; empty: none"`
	AuthorizationServerURL string `split_words:"true" also:"CAMUNDA_OAUTH_URL" default:"https://login.cloud.camunda.io/oauth/token/" desc:"token endpoint"`
	BasicAuthUsername      string `split_words:"true" also:"CAMUNDA_BASIC_AUTH_USERNAME" desc:"user of an engine with basic authentication; empty: none"`
	BasicAuthPassword      string `split_words:"true" also:"CAMUNDA_BASIC_AUTH_PASSWORD" desc:"that user's password"`
	BasicAuthPasswordFile  string `split_words:"true" desc:"file with ZEEBE_BASIC_AUTH_PASSWORD"`
	AuthRequestTimeout     string `split_words:"true" default:"10000" desc:"milliseconds for one token request"`
}

// camundaEnv are names of the Camunda SDKs that the Zeebe clients have no name for.
type camundaEnv struct {
	AuthStrategy    string `split_words:"true" desc:"NONE, BASIC or OAUTH; empty: by what is set of user and client"`
	MtlsCertPath    string `split_words:"true" desc:"PEM file with this client's certificate for the engine, read for each connection; empty: none"`
	MtlsKeyPath     string `split_words:"true" desc:"PEM file with that certificate's key"`
	TenantID        string `split_words:"true" desc:"tenant to take jobs from where RETRY_WORKER_TENANT_IDS is empty"`
	DefaultTenantID string `split_words:"true" desc:"another name of CAMUNDA_TENANT_ID"`
}

// load fills env from the environment; a variable that is set but empty counts as not set. A setting with several names
// takes the value of the one that is set; two that say something else are a problem.
func (c *checker) load(prefix string, env any) {
	if err := envconfig.Process(prefix, env); err != nil {
		c.problems = append(c.problems, fmt.Sprintf("read the environment %s_*: %v", prefix, err))
	}
	variables, _ := variablesOf(prefix, env) // their form is ours, and cannot be wrong
	v := reflect.ValueOf(env).Elem()
	for i, variable := range variables {
		name, value := variable.Name, os.Getenv(variable.Name)
		for _, other := range variable.Also {
			switch set := os.Getenv(other); {
			case set == "" || set == value:
			case value != "":
				c.both(name, other)
			default:
				name, value = other, set
				c.names = append(c.names, variable.Name, other)
			}
		}
		v.Field(i).SetString(cmp.Or(value, variable.Default))
	}
}

// said returns the name by which a setting was set.
func (c *checker) said(text string) string { return strings.NewReplacer(c.names...).Replace(text) }

// both says that two settings contradict each other.
func (c *checker) both(a, b string) {
	c.problems = append(c.problems, fmt.Sprintf("%s and %s are both set, to different values; expected one of them", a, b))
}

// Variable is one setting. Also are other names of it.
type Variable struct {
	Group, Name, Default, Meaning string
	Also                          []string
}

// Variables returns all settings, those of a group together.
func Variables() ([]Variable, error) {
	var all []Variable
	for _, of := range []struct {
		prefix string
		env    any
	}{{workerPrefix, &workerEnv{}}, {zeebePrefix, &zeebeEnv{}}, {camundaPrefix, &camundaEnv{}}, {otelPrefix, &otelEnv{}}} {
		variables, err := variablesOf(of.prefix, of.env)
		if err != nil {
			return nil, fmt.Errorf("list the settings: %w", err)
		}
		all = append(all, variables...)
	}
	for i := range all {
		if all[i].Group == "" {
			all[i].Group = all[i-1].Group
		}
	}
	return all, nil
}

// variablesOf returns the settings of env's fields, in their order.
func variablesOf(prefix string, env any) (all []Variable, err error) {
	const row = "{{range .}}{{.Tags.Get \"group\"}}\t{{usage_key .}}\t{{usage_default .}}\t{{usage_description " +
		".}}\t{{.Tags.Get \"also\"}}\n{{end}}"
	var rows strings.Builder
	err = envconfig.Usagef(prefix, env, &rows, row)
	for line := range strings.Lines(rows.String()) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		all = append(all, Variable{cells[0], cells[1], cells[2], cells[3], strings.Fields(cells[4])})
	}
	return all, err
}

// defaultDatabase is what the tag of workerEnv.DatabaseURL says.
const defaultDatabase = "sqlite:retry-worker.db"

// maxSecretBytes of a file that holds a secret.
const maxSecretBytes = 64 << 10

// secret returns a value that may stand in a file instead: Docker and Kubernetes hand secrets over as files, and a
// variable is seen by whoever may look at the process. preset is what value is where nobody set it. White space around
// it is none of it.
func (c *checker) secret(name, value, preset, path string) string {
	if path == "" {
		return value
	}
	if value != preset {
		c.problems = append(c.problems, fmt.Sprintf("%s and %s_FILE are both set, expected one of them", c.said(name), name))
		return value
	}
	content, err := smallfile.ReadSecret(path, maxSecretBytes)
	text := strings.TrimSpace(string(content))
	switch {
	case err != nil:
		c.add(name+"_FILE", strconv.Quote(path), "a readable file with the value of "+name+" ("+err.Error()+")")
	case text == "":
		c.add(name+"_FILE", strconv.Quote(path), "a file with the value of "+name+"; it is empty")
	}
	return text
}

// journal returns where that is kept.
func (c *checker) journal(w *workerEnv) string {
	wrong := len(c.problems)
	url := c.secret("RETRY_WORKER_DATABASE_URL", w.DatabaseURL, defaultDatabase, w.DatabaseURLFile)
	if len(c.problems) == wrong {
		c.database("RETRY_WORKER_DATABASE_URL", url)
	}
	return url
}

// certificate returns the console's certificate and key, which go together; what is in them, the web server says.
func (c *checker) certificate(w *workerEnv) (certFile, keyFile string) {
	switch {
	case w.TlsCertFile != "" && w.TlsKeyFile == "":
		c.add("RETRY_WORKER_TLS_KEY_FILE", "missing", "the file with the key of RETRY_WORKER_TLS_CERT_FILE")
	case w.TlsCertFile == "" && w.TlsKeyFile != "":
		c.add("RETRY_WORKER_TLS_CERT_FILE", "missing", "the file with the certificate of RETRY_WORKER_TLS_KEY_FILE")
	}
	return w.TlsCertFile, w.TlsKeyFile
}

// otelEnv are the standard names of OpenTelemetry that decide whether, and by which protocol, traces are sent; all
// others (endpoint, certificates, headers, sampler, service name, …) are read where they are used.
type otelEnv struct {
	SDKDisabled                string `group:"Traces" envconfig:"SDK_DISABLED" default:"false" desc:"true: no traces whatever the others say"`
	TracesExporter             string `envconfig:"TRACES_EXPORTER" desc:"otlp: send traces; none: do not; empty: where an endpoint is named"`
	ExporterOTLPEndpoint       string `envconfig:"EXPORTER_OTLP_ENDPOINT" desc:"collector, such as http://127.0.0.1:4318"`
	ExporterOTLPTracesEndpoint string `envconfig:"EXPORTER_OTLP_TRACES_ENDPOINT" desc:"the same for traces alone"`
	ExporterOTLPProtocol       string `envconfig:"EXPORTER_OTLP_PROTOCOL" default:"http/protobuf" desc:"http/protobuf or grpc"`
	ExporterOTLPTracesProtocol string `envconfig:"EXPORTER_OTLP_TRACES_PROTOCOL" desc:"the same for traces alone"`
}

const otelPrefix = "OTEL"

// The protocols by which traces are sent, in the words of OTEL_EXPORTER_OTLP_PROTOCOL.
const (
	TraceGRPC = "grpc"
	TraceHTTP = "http/protobuf"
)

// tracing returns the protocol by which traces are sent; empty where none are.
func (c *checker) tracing() string {
	var o otelEnv
	c.load(otelPrefix, &o)
	if c.boolean("OTEL_SDK_DISABLED", o.SDKDisabled) {
		return ""
	}
	switch o.TracesExporter {
	case "none":
		return ""
	case "":
		if o.ExporterOTLPEndpoint+o.ExporterOTLPTracesEndpoint == "" {
			return ""
		}
	default:
		c.oneOf("OTEL_TRACES_EXPORTER", o.TracesExporter, "otlp", "none")
	}
	if o.ExporterOTLPTracesProtocol != "" {
		return c.oneOf("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", o.ExporterOTLPTracesProtocol, TraceHTTP, TraceGRPC)
	}
	return c.oneOf("OTEL_EXPORTER_OTLP_PROTOCOL", o.ExporterOTLPProtocol, TraceHTTP, TraceGRPC)
}
