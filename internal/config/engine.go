package config

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/zeebe"
)

// zeebeEnv are the names that the Zeebe clients share, each with the names of the Camunda SDKs that mean the same; and
// those of the SDKs that the Zeebe clients have no name for.
type zeebeEnv struct {
	Address                string        `group:"Engine" env:"ZEEBE_ADDRESS" also:"ZEEBE_GRPC_ADDRESS CAMUNDA_GRPC_ADDRESS" default:"127.0.0.1:26500" desc:"gateway: host:port; grpc:// or http:// before it: no TLS, grpcs:// or https://: TLS"`
	RESTAddress            string        `env:"ZEEBE_REST_ADDRESS" also:"CAMUNDA_REST_ADDRESS" desc:"URL that the REST API's /v2 is below, of engines from 8.6: http://HOST:8080 or https://…"`
	InsecureConnection     string        `env:"ZEEBE_INSECURE_CONNECTION" desc:"true: no TLS for gRPC; an address with a scheme says it by itself"`
	CACertificatePath      string        `env:"ZEEBE_CA_CERTIFICATE_PATH" also:"CAMUNDA_MTLS_CA_PATH" desc:"PEM file to trust instead of the system's authorities"`
	OverrideAuthority      string        `env:"ZEEBE_OVERRIDE_AUTHORITY" desc:"name to check the gateway's certificate against"`
	KeepAlive              time.Duration `env:"ZEEBE_KEEP_ALIVE" default:"45000" as:"milliseconds" from:"10000" to:"2147483647" desc:"milliseconds between two pings, at least 10000"`
	ClientID               string        `env:"ZEEBE_CLIENT_ID" also:"CAMUNDA_CLIENT_ID" desc:"OAuth client id; empty: no token is sent"`
	ClientSecret           string        `env:"ZEEBE_CLIENT_SECRET" file:"yes" also:"CAMUNDA_CLIENT_SECRET" desc:"OAuth client secret"`
	TokenAudience          string        `env:"ZEEBE_TOKEN_AUDIENCE" also:"CAMUNDA_TOKEN_AUDIENCE" desc:"audience of the token; empty: the gateway's host"`
	TokenScope             string        `env:"ZEEBE_TOKEN_SCOPE" also:"CAMUNDA_TOKEN_SCOPE CAMUNDA_OAUTH_SCOPE" desc:"scope of the token; empty: none"`
	AuthorizationServerURL string        `env:"ZEEBE_AUTHORIZATION_SERVER_URL" also:"CAMUNDA_OAUTH_URL" default:"https://login.cloud.camunda.io/oauth/token/" desc:"token endpoint"`
	BasicAuthUsername      string        `env:"ZEEBE_BASIC_AUTH_USERNAME" also:"CAMUNDA_BASIC_AUTH_USERNAME" desc:"user of an engine with basic authentication; empty: none"`
	BasicAuthPassword      string        `env:"ZEEBE_BASIC_AUTH_PASSWORD" file:"yes" also:"CAMUNDA_BASIC_AUTH_PASSWORD" desc:"that user's password"`
	AuthRequestTimeout     time.Duration `env:"ZEEBE_AUTH_REQUEST_TIMEOUT" default:"10000" as:"milliseconds" from:"100" to:"600000" desc:"milliseconds for one token request"`
	AuthStrategy           string        `env:"CAMUNDA_AUTH_STRATEGY" desc:"NONE, BASIC or OAUTH; empty: by what is set of user and client"`
	CertificatePath        string        `env:"CAMUNDA_MTLS_CERT_PATH" desc:"PEM file with this client's certificate for the engine, read for each connection; empty: none"`
	KeyPath                string        `env:"CAMUNDA_MTLS_KEY_PATH" desc:"PEM file with that certificate's key"`
	TenantID               string        `env:"CAMUNDA_TENANT_ID" desc:"tenant to take jobs from where RETRY_WORKER_TENANT_IDS is empty"`
	DefaultTenantID        string        `env:"CAMUNDA_DEFAULT_TENANT_ID" desc:"another name of CAMUNDA_TENANT_ID"`
}

func (c *checker) engine(protocol string, z *zeebeEnv) zeebe.Options {
	e := zeebe.Options{
		CACertificatePath: z.CACertificatePath, OverrideAuthority: z.OverrideAuthority, KeepAlive: z.KeepAlive,
		Username: z.BasicAuthUsername, Password: z.BasicAuthPassword,
		CertificatePath: z.CertificatePath, KeyPath: z.KeyPath, Names: c.names,
	}
	e.Address, e.Plaintext = c.gateway(z)
	c.authorities("ZEEBE_CA_CERTIFICATE_PATH", z.CACertificatePath)
	c.protocol(&e, protocol, z)
	c.clientCertificate(&e)
	e.OAuth = c.oauth(z, &e)
	c.credentials(&e, strings.ToUpper(z.AuthStrategy))
	return e
}

// credentials checks that there are a client's, or a user's with his password, or none: not both.
func (c *checker) credentials(e *zeebe.Options, strategy string) {
	const name, client, user = "CAMUNDA_AUTH_STRATEGY", "ZEEBE_CLIENT_ID", "ZEEBE_BASIC_AUTH_USERNAME"
	has := map[string]bool{client: e.OAuth != nil, user: e.Username != ""}
	if has[client] && has[user] {
		c.both(c.said(client), c.said(user))
	}
	if strategy == "" {
		return
	}
	c.oneOf(name, strategy, "NONE", "BASIC", "OAUTH")
	for setting, belongs := range map[string]string{client: "OAUTH", user: "BASIC"} {
		switch {
		case has[setting] && strategy != belongs:
			c.problem(name, name+" is "+strategy+" and "+setting+" is set, expected "+belongs+", or no "+setting)
		case !has[setting] && strategy == belongs:
			c.add(setting, "missing", "a value, since "+name+" is "+strategy)
		}
	}
}

// clientCertificate checks what the engine knows this client by (mutual TLS), where there is one.
func (c *checker) clientCertificate(e *zeebe.Options) {
	const certificate, key = "CAMUNDA_MTLS_CERT_PATH", "CAMUNDA_MTLS_KEY_PATH"
	switch {
	case e.CertificatePath == "" && e.KeyPath == "":
	case e.CertificatePath == "":
		c.add(certificate, "missing", "the file with the certificate of "+key)
	case e.KeyPath == "":
		c.add(key, "missing", "the file with the key of "+certificate)
	case e.Unencrypted():
		c.problem(certificate, certificate+" is set and the engine is spoken to without TLS ("+e.String()+
			"), expected TLS or no certificate")
	default:
		_, err := e.ClientCertificate()
		c.note(certificate, err)
	}
}

// tenants returns those to take jobs from; none: the engine's default. RETRY_WORKER_TENANT_IDS beats the SDKs' one,
// which must be among them (R36).
func (c *checker) tenants(all []string, z *zeebeEnv) []string {
	if z.TenantID != "" && z.DefaultTenantID != "" && z.TenantID != z.DefaultTenantID {
		c.both("CAMUNDA_TENANT_ID", "CAMUNDA_DEFAULT_TENANT_ID")
	}
	name, tenant := "CAMUNDA_TENANT_ID", z.TenantID
	if tenant == "" {
		name, tenant = "CAMUNDA_DEFAULT_TENANT_ID", z.DefaultTenantID
	}
	switch {
	case tenant == "":
	case all == nil:
		return []string{tenant}
	case !slices.Contains(all, tenant):
		c.add(name, strconv.Quote(tenant), "one of RETRY_WORKER_TENANT_IDS, "+strconv.Quote(strings.Join(all, ","))+
			", or nothing")
	}
	return all
}

// protocol keeps of the two addresses the one that is used (R36).
func (c *checker) protocol(e *zeebe.Options, protocol string, z *zeebeEnv) {
	address := cmp.Or(z.RESTAddress, "http://127.0.0.1:8080")
	address = strings.TrimSuffix(strings.TrimSuffix(address, "/"), "/v2") // as documents of the API write it
	c.url("ZEEBE_REST_ADDRESS", address, "http://HOST:8080 or https://…", "http", "https")
	switch {
	case protocol != "auto":
		e.Reason = "RETRY_WORKER_ENGINE is " + protocol
	case z.RESTAddress == "":
		e.Reason, protocol = "ZEEBE_REST_ADDRESS is not set", "grpc"
	default:
		e.Reason, protocol = c.said("ZEEBE_REST_ADDRESS is set"), "rest"
	}
	if protocol == "rest" {
		e.Address, e.RESTAddress = "", address
	}
}

// gatewaySchemes are those that an address of gRPC may have, and whether they stand for no TLS.
var gatewaySchemes = map[string]bool{"grpc": true, "http": true, "grpcs": false, "https": false}

// gateway returns the gRPC gateway's host:port, and whether it speaks no TLS; an address may have a scheme, as those of
// the SDKs have.
func (c *checker) gateway(z *zeebeEnv) (address string, plaintext bool) {
	insecure := c.boolean("ZEEBE_INSECURE_CONNECTION", cmp.Or(z.InsecureConnection, "false"))
	scheme, address, found := strings.Cut(z.Address, "://")
	if !found {
		scheme, address = "", z.Address
	}
	address = strings.TrimSuffix(address, "/")
	plaintext, known := gatewaySchemes[strings.ToLower(scheme)]
	switch {
	case scheme == "" && !isAddress(address):
		c.add("ZEEBE_ADDRESS", strconv.Quote(address), "host:port, such as 127.0.0.1:26500")
	case scheme == "":
		return address, insecure
	case !known || !isAddress(address):
		c.add("ZEEBE_ADDRESS", strconv.Quote(z.Address), "host:port, grpc://host:port, or grpcs://host:port for TLS")
	case z.InsecureConnection != "" && insecure != plaintext:
		c.problem("ZEEBE_ADDRESS", fmt.Sprintf("ZEEBE_INSECURE_CONNECTION is %t and ZEEBE_ADDRESS begins with %s://, "+
			"expected that they agree, or no ZEEBE_INSECURE_CONNECTION", insecure, scheme))
	}
	return address, plaintext
}

// oauth returns nil where no client is configured; what is configured for one is checked all the same.
func (c *checker) oauth(z *zeebeEnv, e *zeebe.Options) *zeebe.OAuth {
	const server, client, secret = "ZEEBE_AUTHORIZATION_SERVER_URL", "ZEEBE_CLIENT_ID", "ZEEBE_CLIENT_SECRET"
	c.url(server, z.AuthorizationServerURL, "https://… or http://…", "https", "http")
	// It stands in logs and in what `check` prints.
	if u, err := url.Parse(z.AuthorizationServerURL); err == nil && u.User != nil {
		c.add(server, "a URL with a user", "one without; the client goes into "+client+" and "+secret)
	}
	if z.ClientID == "" && z.ClientSecret == "" {
		return nil
	}
	if z.ClientID == "" {
		c.add(client, "missing", "the client id that belongs to "+secret)
	}
	if z.ClientSecret == "" && os.Getenv(secret+"_FILE") == "" { // what is wrong with the file is said already
		c.add(secret, "missing", "the secret that belongs to "+client)
	}
	o := &zeebe.OAuth{
		ClientID: z.ClientID, ClientSecret: z.ClientSecret, Audience: z.TokenAudience, Scope: z.TokenScope,
		URL: z.AuthorizationServerURL, RequestTimeout: z.AuthRequestTimeout,
	}
	if o.Audience == "" {
		o.Audience, _, _ = net.SplitHostPort(e.Address)
	}
	if rest, err := url.Parse(e.RESTAddress); o.Audience == "" && err == nil {
		o.Audience = rest.Hostname()
	}
	return o
}

// otelEnv are the standard names of OpenTelemetry that decide whether, and by which protocol, traces are sent; all
// others (endpoint, certificates, headers, sampler, service name, …) are read where they are used.
type otelEnv struct {
	Disabled       bool   `group:"Traces" env:"OTEL_SDK_DISABLED" default:"false" desc:"true: no traces whatever the others say"`
	Exporter       string `env:"OTEL_TRACES_EXPORTER" desc:"otlp: send traces; none: do not; empty: where an endpoint is named"`
	Endpoint       string `env:"OTEL_EXPORTER_OTLP_ENDPOINT" desc:"collector, such as http://127.0.0.1:4318"`
	TracesEndpoint string `env:"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" desc:"the same for traces alone"`
	Protocol       string `env:"OTEL_EXPORTER_OTLP_PROTOCOL" default:"http/protobuf" desc:"http/protobuf or grpc"`
	TracesProtocol string `env:"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL" desc:"the same for traces alone"`
}

// The protocols by which traces are sent, in the words of OTEL_EXPORTER_OTLP_PROTOCOL.
const (
	TraceGRPC = "grpc"
	TraceHTTP = "http/protobuf"
)

// tracing returns the protocol by which traces are sent; empty where none are.
func (c *checker) tracing(o *otelEnv) string {
	if o.Disabled || o.Exporter == "none" || o.Exporter+o.Endpoint+o.TracesEndpoint == "" {
		return "" // nor is it checked what the others say: they are not ours alone
	}
	c.oneOf("OTEL_TRACES_EXPORTER", cmp.Or(o.Exporter, "otlp"), "otlp", "none")
	name, protocol := "OTEL_EXPORTER_OTLP_PROTOCOL", o.Protocol
	if o.TracesProtocol != "" {
		name, protocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", o.TracesProtocol
	}
	c.oneOf(name, protocol, TraceHTTP, TraceGRPC)
	return protocol
}
