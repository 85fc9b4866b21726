package config

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"

	"retry-worker/internal/access"
	"retry-worker/internal/smallfile"
	"retry-worker/internal/text"
	"retry-worker/internal/zeebe"
)

// What Kubernetes injects for a Service named retry-worker, retry-worker-and-more, or as the engine is.
var (
	linkName = regexp.MustCompile(`^(RETRY_WORKER|ZEEBE|CAMUNDA)_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)
	linkPort = regexp.MustCompile(`^(RETRY_WORKER|ZEEBE|CAMUNDA)_(\w+_)?PORT$`) // a mistake, unless its value is a link's
)

func serviceLink(name, value string) bool {
	return linkName.MatchString(name) || linkPort.MatchString(name) && strings.Contains(value, "://")
}

// checker reads settings and gathers what is wrong with them. Values of secrets never reach a problem.
type checker struct {
	problems Problems
	names    []string // of settings, each followed by the other name by which it was set
}

func (c *checker) add(name, found, expected string) {
	c.problems = append(c.problems, c.said(fmt.Sprintf("%s is %s, expected %s", name, found, expected)))
}

func (c *checker) whole(name, value string, least, most int) int {
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		c.add(name, strconv.Quote(value), fmt.Sprintf("a whole number from %d to %d", least, most))
	}
	return n
}

func (c *checker) duration(name, value string, least, most time.Duration) time.Duration {
	d, err := time.ParseDuration(value)
	if err != nil || d < least || d > most {
		c.add(name, strconv.Quote(value), "a duration from "+text.Duration(least)+" to "+text.Duration(most)+", such as 10s")
	}
	return d
}

func (c *checker) milliseconds(name, value string, least, most int) time.Duration {
	return time.Duration(c.whole(name, value, least, most)) * time.Millisecond
}

func (c *checker) boolean(name, value string) bool {
	b, err := strconv.ParseBool(value)
	if err != nil {
		c.add(name, strconv.Quote(value), "true or false")
	}
	return b
}

func (c *checker) address(name, value, example string) string {
	_, port, err := net.SplitHostPort(value)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		c.add(name, strconv.Quote(value), "host:port, such as "+example)
	}
	return value
}

// consoleAddress returns one that only this machine can reach as long as there are no tokens: nobody has to log in
// then.
func (c *checker) consoleAddress(name, value, guard string) string {
	before := len(c.problems)
	c.address(name, value, "127.0.0.1:8095")
	if len(c.problems) > before || guard != "" {
		return value
	}
	if err := access.MayServeWithoutTokens(value); err != nil {
		c.problems = append(c.problems, err.Error())
	}
	return value
}

// provider returns the OpenID provider; nil where none is named.
func (c *checker) provider(w *workerEnv) *access.Provider {
	p := &access.Provider{Issuer: w.OidcIssuer, ClientID: w.OidcClientID, RoleClaim: w.OidcRoleClaim,
		TeamClaim: w.OidcTeamClaim}
	if p.Issuer == "" && p.ClientID == "" && w.OidcClientSecretFile == "" && p.TeamClaim == "" {
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
	if p.ClientID == "" {
		c.add("RETRY_WORKER_OIDC_CLIENT_ID", "missing", "the id of the provider's client")
	}
	if w.OidcClientSecretFile == "" {
		c.add("RETRY_WORKER_OIDC_CLIENT_SECRET_FILE", "missing", "the file with the client's secret")
	}
	p.ClientSecret = c.secret("RETRY_WORKER_OIDC_CLIENT_SECRET", "", "", w.OidcClientSecretFile)
	return p
}

func (c *checker) list(name, value string) []string {
	if value == "" {
		return nil
	}
	items := strings.Split(value, ",")
	for i, item := range items {
		items[i] = strings.TrimSpace(item)
		if items[i] == "" {
			c.add(name, strconv.Quote(value), "names separated by single commas")
			return nil
		}
	}
	return items
}

func (c *checker) networks(name, value string) (all []netip.Prefix) {
	for _, item := range c.list(name, value) {
		p, ok := network(item)
		if !ok {
			c.add(name, strconv.Quote(item), "networks such as 10.0.8.0/24, or addresses such as 10.0.8.7")
		}
		all = append(all, p)
	}
	return all
}

// network reads one, or an address, which is one of its own.
func network(text string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked(), true
	}
	a, err := netip.ParseAddr(strings.Trim(text, "[]"))
	a = a.Unmap().WithZone("")
	return netip.PrefixFrom(a, a.BitLen()), err == nil
}

func (c *checker) level(name, value string) zapcore.Level {
	c.oneOf(name, value, "debug", "info", "warn", "error")
	level, _ := zapcore.ParseLevel(value)
	return level
}

func (c *checker) oneOf(name, value string, allowed ...string) string {
	if !slices.Contains(allowed, value) {
		c.add(name, strconv.Quote(value), text.Or(allowed...))
	}
	return value
}

var schemeForm = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]{0,15})://`)

// url returns a URL, or nil for a bad value, of which it shows no more than the scheme: the rest may hold a password or
// a token.
func (c *checker) url(name, value, expected string, schemes ...string) *url.URL {
	scheme := schemeForm.FindStringSubmatch(value)
	u, err := url.Parse(value)
	switch {
	case scheme == nil:
		c.add(name, "no URL", expected)
	case !slices.Contains(schemes, strings.ToLower(scheme[1])):
		c.add(name, "a URL that begins with "+scheme[0], expected)
	case err != nil || u.Hostname() == "":
		c.add(name, "a URL that begins with "+scheme[0]+" and has no readable host", expected)
	default:
		return u
	}
	return nil
}

// claimURL is a template of a URL, whose host is fixed.
func (c *checker) claimURL(name, value string) string {
	const expected = "https://HOST/… with {id} or {VARIABLE}s behind the host"
	if value == "" {
		return ""
	}
	if u := c.url(name, value, expected, "http", "https"); u != nil && (u.User != nil || !strings.Contains(value, "{")) {
		c.add(name, "a URL with a user, or without a {place}", expected)
	}
	return value
}

func (c *checker) database(name, value string) string {
	if file, ok := strings.CutPrefix(value, "sqlite:"); ok {
		if file == "" {
			c.add(name, strconv.Quote(value), databaseForms)
		}
		return value
	}
	c.url(name, value, databaseForms, "postgres", "postgresql")
	return value
}

const databaseForms = "sqlite:FILE or postgres://…"

var retentionForm = regexp.MustCompile(`^([1-9]\d{0,5})([ydh])$`)

// maxRetention is as long as a time.Duration can be told.
const maxRetention = 200 * 366 * 24 * time.Hour

// retention returns a number of years, days or hours; a year counts as 366 days, so that nothing goes too early.
func (c *checker) retention(name, value string) time.Duration {
	unit := map[string]time.Duration{"y": 366 * 24 * time.Hour, "d": 24 * time.Hour, "h": time.Hour}
	parts := retentionForm.FindStringSubmatch(value)
	if parts == nil {
		c.add(name, strconv.Quote(value), "years, days or hours, such as 5y, 90d or 48h")
		return 0
	}
	n, _ := strconv.Atoi(parts[1]) // its form was checked
	if time.Duration(n) > maxRetention/unit[parts[2]] {
		c.add(name, strconv.Quote(value), "at most 200 years")
		return 0
	}
	return time.Duration(n) * unit[parts[2]]
}

func (c *checker) engine(protocol string) zeebe.Options {
	var z zeebeEnv
	var s camundaEnv
	c.load(zeebePrefix, &z)
	c.load(camundaPrefix, &s)
	if strings.Contains(z.Port, "://") { // what Kubernetes injects for a Service named zeebe
		z.Port = ""
	}
	z.ClientSecret = c.secret("ZEEBE_CLIENT_SECRET", z.ClientSecret, "", z.ClientSecretFile)
	e := zeebe.Options{
		CACertificatePath: z.CACertificatePath,
		OverrideAuthority: z.OverrideAuthority,
		KeepAlive:         c.milliseconds("ZEEBE_KEEP_ALIVE", z.KeepAlive, 10_000, math.MaxInt32),
	}
	e.Address, e.Plaintext = c.gateway(&z)
	c.certificates("ZEEBE_CA_CERTIFICATE_PATH", z.CACertificatePath)
	c.protocol(&e, protocol, &z)
	c.clientCertificate(&e, &s)
	c.credentials(&e, &z, strings.ToUpper(s.AuthStrategy))
	e.Names = c.names
	return e
}

// credentials reads a client's, or a user's with his password, or none: not both.
func (c *checker) credentials(e *zeebe.Options, z *zeebeEnv, strategy string) {
	e.OAuth = c.oauth(z, e)
	e.Username = z.BasicAuthUsername
	e.Password = c.secret("ZEEBE_BASIC_AUTH_PASSWORD", z.BasicAuthPassword, "", z.BasicAuthPasswordFile)
	const client, user = "ZEEBE_CLIENT_ID", "ZEEBE_BASIC_AUTH_USERNAME"
	has := map[string]bool{client: e.OAuth != nil, user: e.Username != ""}
	if has[client] && has[user] {
		c.problems = append(c.problems, c.said(client+" and "+user+" are both set, expected one of them"))
	}
	if strategy == "" {
		return
	}
	c.oneOf("CAMUNDA_AUTH_STRATEGY", strategy, "NONE", "BASIC", "OAUTH")
	for name, belongs := range map[string]string{client: "OAUTH", user: "BASIC"} {
		switch {
		case has[name] && strategy != belongs:
			c.problems = append(c.problems,
				c.said("CAMUNDA_AUTH_STRATEGY is "+strategy+" and "+name+" is set, expected "+belongs+", or no "+name))
		case !has[name] && strategy == belongs:
			c.add(name, "missing", "a value, since CAMUNDA_AUTH_STRATEGY is "+strategy)
		}
	}
}

// clientCertificate reads what the engine knows this client by (mutual TLS), where there is one.
func (c *checker) clientCertificate(e *zeebe.Options, s *camundaEnv) {
	e.CertificatePath, e.KeyPath = s.MtlsCertPath, s.MtlsKeyPath
	switch {
	case e.CertificatePath == "" && e.KeyPath == "":
		return
	case e.CertificatePath == "":
		c.add("CAMUNDA_MTLS_CERT_PATH", "missing", "the file with the certificate of CAMUNDA_MTLS_KEY_PATH")
	case e.KeyPath == "":
		c.add("CAMUNDA_MTLS_KEY_PATH", "missing", "the file with the key of CAMUNDA_MTLS_CERT_PATH")
	case e.Unencrypted():
		c.problems = append(c.problems, "CAMUNDA_MTLS_CERT_PATH is set and the engine is spoken to without TLS ("+
			e.String()+"), expected TLS or no certificate")
	default:
		if _, err := e.ClientCertificate(); err != nil {
			c.problems = append(c.problems, err.Error())
		}
	}
}

// tenants returns those to take jobs from; none: the engine's default. RETRY_WORKER_TENANT_IDS beats the SDKs' one,
// which must be among them (R36).
func (c *checker) tenants(w *workerEnv) []string {
	var s camundaEnv
	c.load(camundaPrefix, &s)
	if s.TenantID != "" && s.DefaultTenantID != "" && s.TenantID != s.DefaultTenantID {
		c.both("CAMUNDA_TENANT_ID", "CAMUNDA_DEFAULT_TENANT_ID")
	}
	name, tenant := "CAMUNDA_TENANT_ID", s.TenantID
	if tenant == "" {
		name, tenant = "CAMUNDA_DEFAULT_TENANT_ID", s.DefaultTenantID
	}
	all := c.list("RETRY_WORKER_TENANT_IDS", w.TenantIds)
	switch {
	case tenant == "":
	case w.TenantIds == "":
		return []string{tenant}
	case !slices.Contains(all, tenant):
		c.add(name, strconv.Quote(tenant), "one of RETRY_WORKER_TENANT_IDS, "+strconv.Quote(w.TenantIds)+", or nothing")
	}
	return all
}

// protocol keeps of the two addresses the one that is used (R36).
func (c *checker) protocol(e *zeebe.Options, protocol string, z *zeebeEnv) {
	address := cmp.Or(z.RestAddress, "http://127.0.0.1:8080")
	address = strings.TrimSuffix(strings.TrimSuffix(address, "/"), "/v2") // as documents of the API write it
	c.url("ZEEBE_REST_ADDRESS", address, "http://HOST:8080 or https://…", "http", "https")
	switch c.oneOf("RETRY_WORKER_ENGINE", protocol, "auto", "grpc", "rest") {
	case "auto":
		e.Reason, protocol = "ZEEBE_REST_ADDRESS is not set", "grpc"
		if z.RestAddress != "" {
			e.Reason, protocol = c.said("ZEEBE_REST_ADDRESS is set"), "rest"
		}
	default:
		e.Reason = "RETRY_WORKER_ENGINE is " + protocol
	}
	if protocol == "rest" {
		e.Address, e.RESTAddress = "", address
	}
}

func (c *checker) certificates(name, path string) {
	if _, err := smallfile.Authorities(c.said(name), path); err != nil {
		c.problems = append(c.problems, err.Error())
	}
}

// schemes that an address of gRPC may have, and whether they stand for no TLS.
var gatewaySchemes = map[string]bool{"grpc": true, "http": true, "grpcs": false, "https": false}

// gateway returns the gRPC gateway's host:port, and whether it speaks no TLS. It follows the Zeebe clients: ZEEBE_HOST
// and ZEEBE_PORT beat ZEEBE_ADDRESS; and the SDKs, whose addresses may have a scheme.
func (c *checker) gateway(z *zeebeEnv) (address string, plaintext bool) {
	insecure := c.boolean("ZEEBE_INSECURE_CONNECTION", cmp.Or(z.InsecureConnection, "false"))
	scheme, address, found := strings.Cut(z.Address, "://")
	if !found {
		scheme, address = "", z.Address
	}
	address = strings.TrimSuffix(address, "/")
	if z.Host != "" || z.Port != "" {
		address = c.hostAndPort(z, address)
	}
	if scheme == "" {
		return c.address("ZEEBE_ADDRESS", address, "127.0.0.1:26500"), insecure
	}
	plaintext, known := gatewaySchemes[strings.ToLower(scheme)]
	_, port, err := net.SplitHostPort(address)
	if _, wrong := strconv.ParseUint(port, 10, 16); !known || err != nil || wrong != nil {
		c.add("ZEEBE_ADDRESS", strconv.Quote(z.Address), "host:port, grpc://host:port, or grpcs://host:port for TLS")
	} else if z.InsecureConnection != "" && insecure != plaintext {
		c.problems = append(c.problems, c.said(fmt.Sprintf("ZEEBE_INSECURE_CONNECTION is %t and ZEEBE_ADDRESS begins with %s://, "+
			"expected that they agree, or no ZEEBE_INSECURE_CONNECTION", insecure, scheme)))
	}
	return address, plaintext
}

// hostAndPort returns what ZEEBE_HOST and ZEEBE_PORT name, which an SDK's address must not contradict.
func (c *checker) hostAndPort(z *zeebeEnv, address string) string {
	host, port := cmp.Or(z.Host, "127.0.0.1"), cmp.Or(z.Port, "26500")
	if _, err := netip.ParseAddr(host); err != nil && strings.Contains(host, ":") {
		c.add("ZEEBE_HOST", strconv.Quote(host), "a host name or an IP address (the port goes into ZEEBE_PORT)")
	}
	c.whole("ZEEBE_PORT", port, 1, math.MaxUint16)
	joined := net.JoinHostPort(host, port)
	if i := slices.Index(c.names, "ZEEBE_ADDRESS"); i >= 0 && address != joined {
		c.both("ZEEBE_HOST or ZEEBE_PORT", c.names[i+1])
	}
	return joined
}

// oauth returns nil where no client is configured; what is configured for one is checked all the same.
func (c *checker) oauth(z *zeebeEnv, e *zeebe.Options) *zeebe.OAuth {
	c.url("ZEEBE_AUTHORIZATION_SERVER_URL", z.AuthorizationServerURL, "https://… or http://…", "https", "http")
	// It stands in logs and in what `check` prints.
	if u, err := url.Parse(z.AuthorizationServerURL); err == nil && u.User != nil {
		c.add("ZEEBE_AUTHORIZATION_SERVER_URL", "a URL with a user",
			"one without; the client goes into ZEEBE_CLIENT_ID and ZEEBE_CLIENT_SECRET")
	}
	timeout := c.milliseconds("ZEEBE_AUTH_REQUEST_TIMEOUT", z.AuthRequestTimeout, 100, 600_000)
	if z.ClientID == "" && z.ClientSecret == "" {
		return nil
	}
	if z.ClientID == "" {
		c.add("ZEEBE_CLIENT_ID", "missing", "the client id that belongs to ZEEBE_CLIENT_SECRET")
	}
	if z.ClientSecret == "" && z.ClientSecretFile == "" { // what is wrong with the file is said already
		c.add("ZEEBE_CLIENT_SECRET", "missing", "the secret that belongs to ZEEBE_CLIENT_ID")
	}
	o := &zeebe.OAuth{
		ClientID: z.ClientID, ClientSecret: z.ClientSecret, Audience: z.TokenAudience, Scope: z.TokenScope,
		URL: z.AuthorizationServerURL, RequestTimeout: timeout,
	}
	if o.Audience == "" {
		o.Audience, _, _ = net.SplitHostPort(e.Address)
	}
	if rest, err := url.Parse(e.RESTAddress); o.Audience == "" && err == nil {
		o.Audience = rest.Hostname()
	}
	return o
}
