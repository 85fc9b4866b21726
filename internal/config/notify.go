package config

import (
	"net"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"retry-worker/internal/access"
	"retry-worker/internal/notify"
	"retry-worker/internal/web"
)

func (c *checker) notify(n *notify.Settings, p *parts) {
	n.SMTP = c.smtp(p)
	at, err := time.Parse("15:04", p.DigestTime)
	if err != nil {
		c.add("RETRY_WORKER_DIGEST_TIME", strconv.Quote(p.DigestTime), "a time of day such as 07:00")
	}
	n.DigestHour, n.DigestMinute = at.Hour(), at.Minute()
	n.Webhooks = c.destinations("RETRY_WORKER_WEBHOOK_ALLOW", p.WebhookAllow)
}

const smtpForms = "smtp://USER@HOST:587 or smtps://USER@HOST:465; the password goes into a file " +
	"(RETRY_WORKER_SMTP_PASSWORD_FILE)"

// smtp returns the mail server; nil if there is none. Messages never show the URL, which may hold a password.
func (c *checker) smtp(p *parts) *notify.MailServer {
	const name = "RETRY_WORKER_SMTP_URL"
	if p.SMTPURL == "" {
		for setting, value := range map[string]string{"RETRY_WORKER_SMTP_PASSWORD_FILE": p.SMTP.PasswordFile,
			"RETRY_WORKER_SMTP_CA_FILE": p.SMTP.CAFile} {
			if value != "" {
				c.add(setting, "set", "RETRY_WORKER_SMTP_URL beside it")
			}
		}
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
	s.Port = c.smtpPort(name, u)
	s.Encryption = c.encryption(name, u, s)
	s.From = c.sender("RETRY_WORKER_MAIL_FROM", p.MailFrom)
	c.authorities("RETRY_WORKER_SMTP_CA_FILE", s.CAFile)
	return s
}

func (c *checker) smtpPort(name string, u *url.URL) int {
	if u.Port() == "" {
		if strings.EqualFold(u.Scheme, "smtps") {
			return 465
		}
		return 587
	}
	return c.whole("the port of "+name, u.Port(), `from:"1" to:"65535"`)
}

// encryption returns what the URL asks for. By default encryption is required, unless the server is on this machine and
// needs no login. A password is never sent unencrypted to another machine.
func (c *checker) encryption(name string, u *url.URL, s *notify.MailServer) notify.Encryption {
	query := u.Query()
	asked := notify.Encryption(query.Get("tls"))
	query.Del("tls")
	known := []notify.Encryption{"", notify.RequiredTLS, notify.Plaintext}
	local := access.IsLoopback(s.Host)
	switch {
	case len(query) > 0 || !slices.Contains(known, asked):
		c.add(name, "a URL with "+strconv.Quote("?"+u.RawQuery),
			"nothing behind the port but ?tls=required or ?tls=none")
	case strings.EqualFold(u.Scheme, "smtps"):
		if asked != "" {
			c.add(name, "smtps:// with ?tls=", "smtps:// alone, which is TLS from the first byte on")
		}
		return notify.ImplicitTLS
	case s.User != "" && !local && asked != "" && asked != notify.RequiredTLS:
		c.add(name, "a URL with a user and ?tls="+string(asked), "?tls=required: a password is not sent in the clear")
	case asked == "" && local && s.User == "":
		return notify.Plaintext
	case asked == "":
		return notify.RequiredTLS
	}
	return asked
}

func (c *checker) sender(name, value string) mail.Address {
	if value == "" {
		c.add(name, "missing", "the address that e-mail comes from, as RETRY_WORKER_SMTP_URL is set, such as "+
			"retry-worker@hospital.example")
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

// destinations parses a list of networks and host names.
func (c *checker) destinations(name, value string) (allowed web.Allowed) {
	for _, item := range c.list(name, value) {
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
