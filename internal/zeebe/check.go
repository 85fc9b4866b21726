package zeebe

import (
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// setting returns the name of the address in use.
func (o *Options) setting() string {
	if o.RESTAddress == "" {
		return "ZEEBE_ADDRESS"
	}
	return "ZEEBE_REST_ADDRESS"
}

// Unencrypted reports whether the engine is spoken to without TLS.
func (o *Options) Unencrypted() bool {
	if o.RESTAddress != "" {
		return !strings.HasPrefix(strings.ToLower(o.RESTAddress), "https://")
	}
	return o.Plaintext
}

// Advice returns what to do about an error of a call, for the person at the command line.
func (o *Options) Advice(err error) string {
	if _, is := errors.AsType[*tokenError](err); is {
		return "the engine itself was not asked"
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded:
		return o.unreachable(err)
	case codes.Unauthenticated:
		return "the gateway wants a token: set ZEEBE_CLIENT_ID, ZEEBE_CLIENT_SECRET and ZEEBE_AUTHORIZATION_SERVER_URL, " +
			"and check ZEEBE_TOKEN_AUDIENCE; or ZEEBE_BASIC_AUTH_USERNAME and its password"
	case codes.PermissionDenied:
		return "give this client that permission in the engine's identity management (docs/operations.md lists them)"
	case codes.InvalidArgument:
		return "check RETRY_WORKER_TENANT_IDS: with multi-tenancy on it must name tenants the engine knows, with it off " +
			"it must be empty"
	case codes.Unimplemented:
		return "is that a Zeebe gateway's gRPC port (26500 by default)?"
	default:
		return "see the gateway's log"
	}
}

// unreachable is Advice for an engine that could not be spoken to. Both protocols tell what was wrong with TLS in words
// alone.
func (o *Options) unreachable(err error) string {
	said := err.Error()
	has := func(words string) bool { return strings.Contains(said, words) }
	switch {
	case has("does not look like a TLS handshake"), has("gave HTTP response to HTTPS client"):
		return "the engine speaks no TLS: set ZEEBE_INSECURE_CONNECTION=true, or ZEEBE_REST_ADDRESS=http://…"
	case has("unknown authority"):
		return "set ZEEBE_CA_CERTIFICATE_PATH to the PEM file of the authority that signed it"
	case has("certificate is valid for"):
		return "set ZEEBE_OVERRIDE_AUTHORITY to a name in the certificate"
	case has("remote error: tls:"):
		return "the engine refused the handshake; where it asks for a client's certificate, set CAMUNDA_MTLS_CERT_PATH and " +
			"CAMUNDA_MTLS_KEY_PATH to one that it knows"
	case has("server preface"), has("EOF"):
		return "the gateway may speak TLS: unset ZEEBE_INSECURE_CONNECTION"
	}
	if _, is := errors.AsType[*restError](err); is {
		return "is the engine running, is it 8.6 or later, and is ZEEBE_REST_ADDRESS right?"
	}
	return "is the engine running, and is " + o.setting() + " right?"
}
