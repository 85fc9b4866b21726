package config

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"retry-worker/internal/zeebe"
)

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
