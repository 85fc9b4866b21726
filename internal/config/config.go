// Package config turns the environment into validated settings, or returns everything that is wrong with it.
package config

import (
	"cmp"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.uber.org/zap/zapcore"

	"retry-worker/internal/access"
	"retry-worker/internal/notify"
	"retry-worker/internal/web"
	"retry-worker/internal/zeebe"
)

// Settings of one process, validated. A field with the tag env is read from that variable; see Variable, load and read
// for the other tags.
type Settings struct {
	HTTPAddr        string         `group:"Console and API" env:"RETRY_WORKER_HTTP_ADDR" as:"address" default:"127.0.0.1:8095" desc:"console and API: host:port; loopback only without a tokens file"`
	OperateURL      string         `env:"RETRY_WORKER_OPERATE_URL" page:"Operate" desc:"where people open Camunda's Operate, for links to process instances: https://…; empty: no links"`
	GrafanaURL      string         `env:"RETRY_WORKER_GRAFANA_URL" page:"Grafana" desc:"where people open the Grafana board, for a link from the overview: https://…/d/…; empty: no link"`
	ClaimURL        string         `env:"RETRY_WORKER_CLAIM_URL" desc:"a claim's page in the hospital's own system, for a link: https://…/{id}, or with {VARIABLE}s of its context; empty: no link"`
	AuthTokensFile  string         `env:"RETRY_WORKER_AUTH_TOKENS_FILE" desc:"who may use console and API (retry-worker token new), taken up again when it changes; empty: everybody on this machine"`
	TLSCertFile     string         `env:"RETRY_WORKER_TLS_CERT_FILE" with:"RETRY_WORKER_TLS_KEY_FILE" desc:"PEM file with the certificate of console and API, taken up again when it changes; empty: no TLS"`
	TLSKeyFile      string         `env:"RETRY_WORKER_TLS_KEY_FILE" with:"RETRY_WORKER_TLS_CERT_FILE" desc:"PEM file with the certificate's key"`
	Proxies         []netip.Prefix `env:"RETRY_WORKER_PROXIES" desc:"reverse proxies before console and API, networks or addresses, comma-separated: their X-Forwarded-For is believed"`
	Token           string         `env:"RETRY_WORKER_TOKEN" desc:"token that the other commands show to the API; serve does not read it"`
	PoliciesFile    string         `group:"Jobs and policies" env:"RETRY_WORKER_POLICIES_FILE" desc:"policy catalogue (YAML), taken up again when it changes; empty: the built-in one"`
	MaxJobsActive   int            `env:"RETRY_WORKER_MAX_JOBS_ACTIVE" default:"50" from:"1" to:"10000" desc:"jobs held per job type, 1 to 10000"`
	JobTimeout      time.Duration  `env:"RETRY_WORKER_JOB_TIMEOUT" default:"10s" from:"1s" to:"1h" desc:"time to answer a job, 1s to 1h"`
	Concurrency     int            `env:"RETRY_WORKER_CONCURRENCY" default:"50" from:"1" to:"10000" desc:"jobs handled at once, all types together, 1 to 10000"`
	TenantIDs       []string       `env:"RETRY_WORKER_TENANT_IDS" desc:"tenants to take jobs from, comma-separated; empty: the engine's default"`
	WorkerName      string         `env:"RETRY_WORKER_WORKER_NAME" desc:"name shown by the engine; empty: retry-worker@HOSTNAME"`
	ShutdownTimeout time.Duration  `env:"RETRY_WORKER_SHUTDOWN_TIMEOUT" default:"25s" from:"1s" to:"1h" desc:"time for a stop, 1s to 1h"`
	DatabaseURL     string         `group:"Journal and events" env:"RETRY_WORKER_DATABASE_URL" file:"yes" default:"sqlite:retry-worker.db" desc:"journal: sqlite:FILE or postgres://USER@HOST/DATABASE"`
	Retention       time.Duration  `env:"RETRY_WORKER_RETENTION" as:"retention" default:"5y" desc:"how long records are kept: 5y, 90d or 48h"`
	EventsURL       string         `env:"RETRY_WORKER_EVENTS_URL" file:"yes" desc:"NATS server with JetStream for events, nats://…; empty: off"`
	OpsAddr         string         `group:"Operation" env:"RETRY_WORKER_OPS_ADDR" as:"address" default:"127.0.0.1:9095" desc:"/metrics, /livez and /readyz: host:port"`
	LogLevel        zapcore.Level  `env:"RETRY_WORKER_LOG_LEVEL" default:"info" of:"debug info warn error" desc:"debug, info, warn or error"`
	LogFormat       string         `env:"RETRY_WORKER_LOG_FORMAT" default:"json" of:"json console" desc:"json or console"`
	Profiles        bool           `env:"RETRY_WORKER_PPROF" default:"false" desc:"true: profiles of the process under /debug/pprof/ of RETRY_WORKER_OPS_ADDR"`
	Notify          notify.Settings

	Provider      *access.Provider // for logins; nil: none
	TraceProtocol string           // TraceGRPC or TraceHTTP; empty: no traces
	Engine        zeebe.Options
	Unread        []string // hints on set names of other engine clients that are not read
}

// parts holds settings that do not correspond to one field of Settings.
type parts struct {
	OIDC         access.Provider
	SMTPURL      string `group:"Messages to teams" env:"RETRY_WORKER_SMTP_URL" with:"RETRY_WORKER_MAIL_FROM" desc:"mail server for what teams are told: smtp://USER@HOST:587 (STARTTLS) or smtps://USER@HOST:465; empty: no e-mail"`
	SMTP         notify.MailServer
	MailFrom     string   `env:"RETRY_WORKER_MAIL_FROM" desc:"address that e-mail comes from, such as retry-worker@hospital.example"`
	DigestTime   string   `env:"RETRY_WORKER_DIGEST_TIME" default:"07:00" desc:"time of day of the digest: HH:MM"`
	WebhookAllow []string `env:"RETRY_WORKER_WEBHOOK_ALLOW" desc:"addresses beside public ones that webhooks and probes of destinations may go to: networks, addresses or host names, comma-separated"`

	Protocol           string `group:"Engine" env:"RETRY_WORKER_ENGINE" default:"auto" of:"auto grpc rest" desc:"grpc, rest, or auto: REST where ZEEBE_REST_ADDRESS is set, else gRPC"`
	InsecureConnection string `env:"ZEEBE_INSECURE_CONNECTION" desc:"true: no TLS for gRPC; an address with a scheme says it by itself"`
	AuthStrategy       string `env:"CAMUNDA_AUTH_STRATEGY" desc:"NONE, BASIC or OAUTH; empty: by what is set of user and client"`
	OAuth              zeebe.OAuth
	TenantID           string `env:"CAMUNDA_TENANT_ID" also:"CAMUNDA_DEFAULT_TENANT_ID" desc:"tenant to take jobs from where RETRY_WORKER_TENANT_IDS is empty"`

	Traces otelEnv
}

// Problems holds everything that is wrong with the environment, in lines.
type Problems []string

func (p Problems) Error() string { return strings.Join(p, "\n") }

// OfEngine holds the prefixes of the variables that say how to reach the engine.
var OfEngine = []string{"ZEEBE_", "CAMUNDA_", "RETRY_WORKER_ENGINE", "RETRY_WORKER_TENANT_IDS"}

// Load reads and checks the environment. A command that needs only some settings gives their prefixes; problems of
// others are ignored. The error is Problems.
func Load(only ...string) (Settings, error) {
	var (
		c checker
		s Settings
		p parts
	)
	c.load(&s, &p)
	c.console(&s, &p)
	c.journal(&s)
	s.Notify.SMTP = c.smtp(&p)
	digest, err := time.Parse("15:04", p.DigestTime)
	if err != nil {
		c.add("RETRY_WORKER_DIGEST_TIME", strconv.Quote(p.DigestTime), "a time of day such as 07:00")
	}
	s.Notify.DigestHour, s.Notify.DigestMinute = digest.Hour(), digest.Minute()
	s.Notify.Webhooks = c.destinations("RETRY_WORKER_WEBHOOK_ALLOW", p.WebhookAllow)
	s.TenantIDs = c.tenants(s.TenantIDs, p.TenantID)
	c.engine(&s.Engine, &p)
	s.TraceProtocol = c.tracing(&p.Traces)
	host, _ := os.Hostname() // empty if unknown
	s.WorkerName = cmp.Or(s.WorkerName, strings.TrimSuffix("retry-worker@"+host, "@"))
	unknown, hints := unread()
	s.Unread = hints
	if problems := append(c.about(only), unknown...); len(problems) > 0 {
		slices.Sort(problems)
		return Settings{}, problems
	}
	return s, nil
}

// claimPlace is where a claim's id or a variable of its context stands in RETRY_WORKER_CLAIM_URL.
var claimPlace = regexp.MustCompile(`\{[^{}]+\}`)

// console checks the settings of the console. Without a login only this machine may reach it.
func (c *checker) console(s *Settings, p *parts) {
	if s.HTTPAddr != "" && s.AuthTokensFile+p.OIDC.Issuer == "" {
		c.note("RETRY_WORKER_AUTH_TOKENS_FILE", access.MayServeWithoutTokens(s.HTTPAddr))
	}
	if s.ClaimURL != "" {
		const expected = "https://HOST/… with {id} or {VARIABLE}s behind the host"
		u := c.url("RETRY_WORKER_CLAIM_URL", s.ClaimURL, expected, "http", "https")
		rest := claimPlace.ReplaceAllString(s.ClaimURL, "")
		if u != nil && (u.User != nil || rest == s.ClaimURL || strings.ContainsAny(rest, "{}")) {
			c.add("RETRY_WORKER_CLAIM_URL", "a URL with a user, or without a {place}", expected)
		}
	}
	s.Provider = c.provider(&p.OIDC)
}

// provider returns the OpenID provider; nil if none is named.
func (c *checker) provider(p *access.Provider) *access.Provider {
	if p.Issuer == "" {
		return nil
	}
	u := c.url("RETRY_WORKER_OIDC_ISSUER", p.Issuer, "https://…, or http://… on this machine", "https", "http")
	if u != nil && u.Scheme == "http" && !access.IsLoopback(u.Hostname()) {
		c.add("RETRY_WORKER_OIDC_ISSUER", "a URL that begins with http://",
			"https://…, since anyone who can impersonate the provider can log in as anyone")
	}
	if u != nil && (u.User != nil || strings.ContainsAny(p.Issuer, "?#")) {
		c.add("RETRY_WORKER_OIDC_ISSUER", "a URL with a user, a query or a fragment",
			"the issuer as the provider names itself, which has none of them")
	}
	return p
}

// journal checks the addresses of the database and the events.
func (c *checker) journal(s *Settings) {
	const expected = "sqlite:FILE or postgres://…"
	switch file, sqlite := strings.CutPrefix(s.DatabaseURL, "sqlite:"); {
	case sqlite && file == "":
		c.add("RETRY_WORKER_DATABASE_URL", strconv.Quote(s.DatabaseURL), expected)
	case !sqlite:
		c.url("RETRY_WORKER_DATABASE_URL", s.DatabaseURL, expected, "postgres", "postgresql")
	}
	if s.EventsURL != "" {
		c.url("RETRY_WORKER_EVENTS_URL", s.EventsURL, "nats://…", "nats", "tls")
	}
}

const smtpForms = "smtp://USER@HOST:587 or smtps://USER@HOST:465; the password goes into a file " +
	"(RETRY_WORKER_SMTP_PASSWORD_FILE)"

// smtp returns the mail server; nil if there is none. Messages never show the URL, which may hold a password.
func (c *checker) smtp(p *parts) *notify.MailServer {
	const name = "RETRY_WORKER_SMTP_URL"
	if p.SMTPURL == "" {
		return nil
	}
	u := c.url(name, p.SMTPURL, smtpForms, "smtp", "smtps")
	if u == nil {
		return nil
	}
	s := &p.SMTP
	s.Host, s.User = u.Hostname(), u.User.Username()
	_, password := u.User.Password()
	switch {
	case password:
		c.add(name, "a URL with a password in it", smtpForms)
	case strings.Trim(u.Path, "/") != "" || u.Fragment != "" || strings.ContainsAny(s.User, "\r\n\x00"):
		c.add(name, "a URL with more than user, host, port and tls", smtpForms)
	case (s.User != "") != (s.PasswordFile != ""):
		c.add(name, "a user without a password file, or the other way round",
			"both, RETRY_WORKER_SMTP_PASSWORD_FILE and USER@ in the URL, or neither")
	}
	port := "587"
	if strings.EqualFold(u.Scheme, "smtps") {
		port = "465"
	}
	c.read("the port of "+name, cmp.Or(u.Port(), port), `from:"1" to:"65535"`, &s.Port)
	s.Encryption = c.encryption(name, u, s)
	s.From = c.sender("RETRY_WORKER_MAIL_FROM", p.MailFrom)
	c.authorities("RETRY_WORKER_SMTP_CA_FILE", s.CAFile)
	return s
}

// encryption returns what the URL asks for. By default encryption is required, unless the server is on this machine and
// needs no login. A password is never sent unencrypted to another machine.
func (c *checker) encryption(name string, u *url.URL, s *notify.MailServer) notify.Encryption {
	query := u.Query()
	asked := notify.Encryption(query.Get("tls"))
	query.Del("tls")
	implicit, local := strings.EqualFold(u.Scheme, "smtps"), access.IsLoopback(s.Host)
	switch {
	case len(query) > 0 || asked != "" && asked != notify.RequiredTLS && asked != notify.Plaintext:
		c.add(name, "a URL with "+strconv.Quote("?"+u.RawQuery),
			"nothing behind the port but ?tls=required or ?tls=none")
	case implicit && asked != "":
		c.add(name, "smtps:// with ?tls=", "smtps:// alone, which is TLS from the first byte on")
	case asked == notify.Plaintext && s.User != "" && !local:
		c.add(name, "a URL with a user and ?tls=none", "?tls=required: a password is not sent in the clear")
	}
	switch {
	case implicit:
		return notify.ImplicitTLS
	case asked == "" && local && s.User == "":
		return notify.Plaintext
	}
	return cmp.Or(asked, notify.RequiredTLS)
}

func (c *checker) sender(name, value string) mail.Address {
	if value == "" {
		return mail.Address{}
	}
	a, err := mail.ParseAddress(value)
	if err != nil || strings.ContainsFunc(a.Address, func(r rune) bool { return r <= ' ' || r > '~' }) ||
		strings.ContainsAny(a.Address, `"<>`) {
		c.add(name, strconv.Quote(value),
			"an address such as retry-worker@hospital.example, or Retry Worker <retry-worker@hospital.example>")
		return mail.Address{}
	}
	return *a
}

var hostForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)

// destinations parses networks and host names.
func (c *checker) destinations(name string, items []string) (allowed web.Allowed) {
	for _, item := range items {
		if p, ok := network(item); ok {
			allowed.Networks = append(allowed.Networks, p)
		} else if hostForm.MatchString(item) && net.ParseIP(item) == nil && strings.ContainsFunc(item, unicode.IsLetter) {
			allowed.Hosts = append(allowed.Hosts, strings.ToLower(item))
		} else {
			c.add(name, strconv.Quote(item), "networks such as 10.0.8.0/24, addresses such as 127.0.0.1, or host names")
		}
	}
	return allowed
}

func (c *checker) engine(e *zeebe.Options, p *parts) {
	e.Names = c.names
	c.gateway(e, p.InsecureConnection)
	c.authorities("ZEEBE_CA_CERTIFICATE_PATH", e.CACertificatePath)
	c.protocol(e, p.Protocol)
	c.clientCertificate(e)
	e.OAuth = c.oauth(&p.OAuth, e)
	c.credentials(e, strings.ToUpper(p.AuthStrategy))
}

// credentials checks that there are a client's, or a user and password, or neither, but not both.
func (c *checker) credentials(e *zeebe.Options, strategy string) {
	const name, client, user = "CAMUNDA_AUTH_STRATEGY", "ZEEBE_CLIENT_ID", "ZEEBE_BASIC_AUTH_USERNAME"
	has := map[string]bool{client: e.OAuth != nil, user: e.Username != ""}
	if has[client] && has[user] {
		c.both(c.said(client), c.said(user))
	}
	if strategy == "" {
		return
	}
	c.read(name, strategy, `of:"NONE BASIC OAUTH"`, &strategy)
	for setting, belongs := range map[string]string{client: "OAUTH", user: "BASIC"} {
		switch {
		case has[setting] && strategy != belongs:
			c.problem(name, name+" is "+strategy+" and "+setting+" is set, expected "+belongs+", or no "+setting)
		case !has[setting] && strategy == belongs:
			c.add(setting, "missing", "a value, since "+name+" is "+strategy)
		}
	}
}

// clientCertificate checks the client's certificate for mutual TLS, if there is one.
func (c *checker) clientCertificate(e *zeebe.Options) {
	const certificate = "CAMUNDA_MTLS_CERT_PATH"
	switch {
	case e.CertificatePath == "" || e.KeyPath == "": // nothing, or already reported
	case e.Unencrypted():
		c.problem(certificate, certificate+" is set and the engine is spoken to without TLS ("+e.String()+
			"), expected TLS or no certificate")
	default:
		_, err := e.ClientCertificate()
		c.note(certificate, err)
	}
}

// tenants returns the tenants to take jobs from; none means the engine's default. RETRY_WORKER_TENANT_IDS wins over the
// SDKs' setting, which must be among them (R36).
func (c *checker) tenants(all []string, tenant string) []string {
	switch {
	case tenant == "":
	case all == nil:
		return []string{tenant}
	case !slices.Contains(all, tenant):
		c.add("CAMUNDA_TENANT_ID", strconv.Quote(tenant), "one of RETRY_WORKER_TENANT_IDS, "+
			strconv.Quote(strings.Join(all, ","))+", or nothing")
	}
	return all
}

// protocol keeps the one of the two addresses that is used (R36).
func (c *checker) protocol(e *zeebe.Options, protocol string) {
	address := cmp.Or(e.RESTAddress, "http://127.0.0.1:8080")
	address = strings.TrimSuffix(strings.TrimSuffix(address, "/"), "/v2") // as the API's documentation writes it
	c.base("ZEEBE_REST_ADDRESS", address, "http://HOST:8080 or https://…")
	switch {
	case protocol != "auto":
		e.Reason = "RETRY_WORKER_ENGINE is " + protocol
	case e.RESTAddress == "":
		e.Reason, protocol = "ZEEBE_REST_ADDRESS is not set", "grpc"
	default:
		e.Reason, protocol = c.said("ZEEBE_REST_ADDRESS is set"), "rest"
	}
	if e.RESTAddress = ""; protocol == "rest" {
		e.Address, e.RESTAddress = "", address
	}
}

// gatewaySchemes maps the schemes of a gRPC address to whether they mean no TLS.
var gatewaySchemes = map[string]bool{"grpc": true, "http": true, "grpcs": false, "https": false}

// gateway reduces the gRPC gateway's address to host:port and sets Plaintext. The address may have a scheme, like those
// of the SDKs.
func (c *checker) gateway(e *zeebe.Options, insecureConnection string) {
	var insecure bool
	c.read("ZEEBE_INSECURE_CONNECTION", cmp.Or(insecureConnection, "false"), "", &insecure)
	given := e.Address
	scheme, address, found := strings.Cut(given, "://")
	if !found {
		scheme, address = "", given
	}
	plaintext, known := gatewaySchemes[strings.ToLower(scheme)]
	e.Address, e.Plaintext = strings.TrimSuffix(address, "/"), plaintext
	switch {
	case scheme == "":
		if e.Plaintext = insecure; !isAddress(e.Address) {
			c.add("ZEEBE_ADDRESS", strconv.Quote(e.Address), "host:port, such as 127.0.0.1:26500")
		}
	case !known || !isAddress(e.Address):
		c.add("ZEEBE_ADDRESS", strconv.Quote(given), "host:port, grpc://host:port, or grpcs://host:port for TLS")
	case insecureConnection != "" && insecure != plaintext:
		c.problem("ZEEBE_ADDRESS", fmt.Sprintf("ZEEBE_INSECURE_CONNECTION is %t and ZEEBE_ADDRESS begins with %s://, "+
			"expected that they agree, or no ZEEBE_INSECURE_CONNECTION", insecure, scheme))
	}
}

// oauth returns nil if no client is configured. It checks the other settings in any case.
func (c *checker) oauth(o *zeebe.OAuth, e *zeebe.Options) *zeebe.OAuth {
	const server, client, secret = "ZEEBE_AUTHORIZATION_SERVER_URL", "ZEEBE_CLIENT_ID", "ZEEBE_CLIENT_SECRET"
	c.url(server, o.URL, "https://… or http://…", "https", "http")
	// The URL is logged, and printed by `check`.
	if u, err := url.Parse(o.URL); err == nil && u.User != nil {
		c.add(server, "a URL with a user", "one without; the client goes into "+client+" and "+secret)
	}
	if o.ClientID == "" && o.ClientSecret == "" {
		return nil
	}
	if o.Audience == "" {
		o.Audience, _, _ = net.SplitHostPort(e.Address)
	}
	if rest, err := url.Parse(e.RESTAddress); o.Audience == "" && err == nil {
		o.Audience = rest.Hostname()
	}
	return o
}

// otelEnv holds the OpenTelemetry variables that decide whether and by which protocol traces are sent. The others
// (endpoint, certificates, headers, sampler, …) are read by the OpenTelemetry packages.
type otelEnv struct {
	Disabled       bool   `group:"Traces" env:"OTEL_SDK_DISABLED" default:"false" desc:"true: no traces whatever the others say"`
	Exporter       string `env:"OTEL_TRACES_EXPORTER" desc:"otlp: send traces; none: do not; empty: where an endpoint is named"`
	Endpoint       string `env:"OTEL_EXPORTER_OTLP_ENDPOINT" desc:"collector, such as http://127.0.0.1:4318"`
	TracesEndpoint string `env:"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" desc:"the same for traces alone"`
	Protocol       string `env:"OTEL_EXPORTER_OTLP_PROTOCOL" default:"http/protobuf" desc:"http/protobuf or grpc"`
	TracesProtocol string `env:"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL" desc:"the same for traces alone"`
}

// The protocols of traces, as OTEL_EXPORTER_OTLP_PROTOCOL names them.
const (
	TraceGRPC = "grpc"
	TraceHTTP = "http/protobuf"
)

// tracing returns the protocol of traces; empty if none are sent.
func (c *checker) tracing(o *otelEnv) string {
	if o.Disabled || o.Exporter == "none" || o.Exporter+o.Endpoint+o.TracesEndpoint == "" {
		return "" // other programs use these variables too, so they are not checked
	}
	c.read("OTEL_TRACES_EXPORTER", cmp.Or(o.Exporter, "otlp"), `of:"otlp none"`, &o.Exporter)
	name, protocol := "OTEL_EXPORTER_OTLP_PROTOCOL", o.Protocol
	if o.TracesProtocol != "" {
		name, protocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", o.TracesProtocol
	}
	c.read(name, protocol, `of:"http/protobuf grpc"`, &protocol)
	name, endpoint := "OTEL_EXPORTER_OTLP_ENDPOINT", o.Endpoint
	if o.TracesEndpoint != "" {
		name, endpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", o.TracesEndpoint
	}
	if endpoint != "" && protocol == TraceHTTP { // for gRPC host:port is enough
		c.url(name, endpoint, "http://HOST:4318 or https://…", "http", "https")
	}
	return protocol
}
