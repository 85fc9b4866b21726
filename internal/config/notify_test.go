package config_test

import (
	"net/mail"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/config"
	"retry-worker/internal/notify"
)

const (
	destinations = ", expected networks such as 10.0.8.0/24, addresses such as 127.0.0.1, or host names"
	console      = ", expected https://HOST or https://HOST/PATH, where people open the console"
	mailServer   = ", expected smtp://USER@HOST:587 or smtps://USER@HOST:465; the password goes into a file (RETRY_WORKER_SMTP_PASSWORD_FILE)"
)

// notifySettings are those of internal/config/notify.go, as TestSettings… take them.
func notifySettings() []setting {
	return []setting{
		{name: "RETRY_WORKER_SMTP_PASSWORD_FILE", bad: map[string]string{"/run/secrets/smtp": "set, expected RETRY_WORKER_SMTP_URL beside it"}},
		{name: "RETRY_WORKER_SMTP_CA_FILE", bad: map[string]string{"/etc/ca.pem": "set, expected RETRY_WORKER_SMTP_URL beside it"}},
		{name: "RETRY_WORKER_SMTP_URL"}, // TestMailServer
		{name: "RETRY_WORKER_MAIL_FROM"},
		{name: "RETRY_WORKER_PUBLIC_URL", read: func(s *config.Settings) any { return s.Notify.PublicURL },
			preset: "", good: "https://retry.hospital.example/console/", want: "https://retry.hospital.example/console", bad: map[string]string{
				"retry.hospital.example":       "no URL" + console,
				"ftp://retry.hospital.example": "a URL that begins with ftp://" + console,
				"https://u:p@retry.example":    "a URL with user, query or fragment" + console,
				"https://retry.example/?a=b":   "a URL with user, query or fragment" + console,
				"https://":                     "a URL that begins with https:// and has no readable host" + console,
			}},
		{name: "RETRY_WORKER_NOTIFY_INTERVAL", read: func(s *config.Settings) any { return s.Notify.Interval },
			preset: 15 * time.Minute, good: "1h", want: time.Hour, bad: map[string]string{
				"999ms": `"999ms", expected a duration from 1s to 24h0m0s, such as 10s`, "25h": `"25h", expected a duration from 1s to 24h0m0s, such as 10s`,
			}},
		{name: "RETRY_WORKER_DIGEST_TIME", read: func(s *config.Settings) any { return [2]int{s.Notify.DigestHour, s.Notify.DigestMinute} },
			preset: [2]int{7, 0}, good: "23:59", want: [2]int{23, 59}, bad: map[string]string{
				"24:00": `"24:00", expected a time of day such as 07:00`, "7:00": `"7:00", expected a time of day such as 07:00`, "07h": `"07h", expected a time of day such as 07:00`,
			}},
		{name: "RETRY_WORKER_TIME_ZONE", read: func(s *config.Settings) any { return s.Notify.Zone.String() },
			preset: "America/Sao_Paulo", good: "America/Manaus", want: "America/Manaus", bad: map[string]string{
				"Sao_Paulo": `"Sao_Paulo", expected a time zone such as America/Sao_Paulo`, "Local": `"Local", expected a time zone such as America/Sao_Paulo`,
				"../etc": `"../etc", expected a time zone such as America/Sao_Paulo`,
			}},
		{name: "RETRY_WORKER_WEBHOOK_ALLOW", read: func(s *config.Settings) any { return []any{s.Notify.Webhooks.Networks, s.Notify.Webhooks.Hosts} },
			preset: []any{[]netip.Prefix(nil), []string(nil)}, good: "10.0.8.7/24, 127.0.0.1,::1, Chat.Hospital.example",
			want: []any{[]netip.Prefix{netip.MustParsePrefix("10.0.8.0/24"), netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("::1/128")}, []string{"chat.hospital.example"}},
			bad: map[string]string{
				"10.0.8.0/33": `"10.0.8.0/33"` + destinations, "http://chat": `"http://chat"` + destinations, "999.1.1.1": `"999.1.1.1"` + destinations,
				"*": `"*"` + destinations, "a,,b": `"a,,b", expected names separated by single commas`,
			}},
	}
}

func TestMailServer(t *testing.T) {
	authority := write(t, "authority.pem", authorityPEM)
	from := mail.Address{Address: "retry-worker@hospital.example"}
	for url, want := range map[string]notify.MailServer{
		"smtp://mail.hospital.example":                       {Host: "mail.hospital.example", Port: 587, Encryption: notify.RequiredTLS},
		"smtp://mail.hospital.example:25?tls=opportunistic":  {Host: "mail.hospital.example", Port: 25, Encryption: notify.Opportunistic},
		"smtp://mail.hospital.example:25?tls=none":           {Host: "mail.hospital.example", Port: 25, Encryption: notify.Plaintext},
		"smtp://worker%40hospital@mail.hospital.example:587": {Host: "mail.hospital.example", Port: 587, User: "worker@hospital", PasswordFile: "/p", Encryption: notify.RequiredTLS},
		"SMTPS://mail.hospital.example/":                     {Host: "mail.hospital.example", Port: 465, Encryption: notify.ImplicitTLS},
		"smtp://127.0.0.1:2525":                              {Host: "127.0.0.1", Port: 2525, Encryption: notify.Opportunistic},
		"smtp://[::1]:2525":                                  {Host: "::1", Port: 2525, Encryption: notify.Opportunistic},
		"smtp://localhost:2525?tls=required":                 {Host: "localhost", Port: 2525, Encryption: notify.RequiredTLS},
		"smtp://worker@localhost?tls=none":                   {Host: "localhost", Port: 587, User: "worker", PasswordFile: "/p", Encryption: notify.Plaintext},
	} {
		environment(t, map[string]string{"RETRY_WORKER_SMTP_URL": url, "RETRY_WORKER_MAIL_FROM": from.Address,
			"RETRY_WORKER_SMTP_PASSWORD_FILE": want.PasswordFile, "RETRY_WORKER_SMTP_CA_FILE": authority})
		want.From, want.CAFile = from, authority
		if got := load(t).Notify.SMTP; got == nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: got %+v, want %+v", url, got, want)
		}
		settings, err := config.LoadNotify()
		if err != nil || !reflect.DeepEqual(*settings.SMTP, want) {
			t.Errorf("%s: LoadNotify: got %+v, %v", url, settings.SMTP, err)
		}
	}
	if load(t).Notify.SMTP == nil {
		t.Error("no mail server")
	}
	environment(t, nil)
	if got := load(t).Notify.SMTP; got != nil {
		t.Errorf("got %+v where none is set", got)
	}
}

func TestMailServerRefuses(t *testing.T) {
	const name, from = "RETRY_WORKER_SMTP_URL is ", "RETRY_WORKER_MAIL_FROM is "
	secret := "hunter2"
	for url, line := range map[string]string{
		"mail.hospital.example":        "no URL" + mailServer,
		"http://mail.hospital.example": "a URL that begins with http://" + mailServer,
		"smtp://:587":                  "a URL that begins with smtp:// and has no readable host" + mailServer,
		"smtp://worker:" + secret + "@mail.hospital.example": "a URL with a password in it" + mailServer,
		"smtp://mail.hospital.example/inbox":                 "a URL with more than user, host, port and tls" + mailServer,
		"smtp://mail.hospital.example:0":                     `a URL with the port "0", expected a port from 1 to 65535`,
		"smtp://mail.hospital.example?tls=no":                `a URL with "?tls=no", expected nothing behind the port but ?tls=required, ?tls=opportunistic or ?tls=none`,
		"smtp://mail.hospital.example?a=b":                   `a URL with "?a=b", expected nothing behind the port but ?tls=required, ?tls=opportunistic or ?tls=none`,
		"smtps://mail.hospital.example?tls=none":             "smtps:// with ?tls=, expected smtps:// alone, which is TLS from the first byte on",
	} {
		vars := map[string]string{"RETRY_WORKER_SMTP_URL": url, "RETRY_WORKER_MAIL_FROM": "retry-worker@hospital.example"}
		if strings.Contains(url, secret) {
			vars["RETRY_WORKER_SMTP_PASSWORD_FILE"] = "/p"
		}
		environment(t, vars)
		got := problems(t)
		if !slices.Equal(got, []string{name + line}) {
			t.Errorf("%s:\ngot  %q\nwant %q", url, got, name+line)
		}
		if strings.Contains(strings.Join(got, ""), secret) {
			t.Errorf("%s: the password is shown: %q", url, got)
		}
	}
	for user, line := range map[string]string{
		"smtp://mail.hospital.example?tls=none":         "a user without a password file, or the other way round",
		"smtp://worker@mail.hospital.example?tls=none":  "a URL with a user and ?tls=none",
		"smtp://worker@10.0.0.7?tls=opportunistic":      "a URL with a user and ?tls=opportunistic",
		"smtp://worker@127.0.0.1.evil.example?tls=none": "a URL with a user and ?tls=none",
		"smtp://a%0d%0aQUIT@mail.hospital.example":      "a URL with more than user, host, port and tls",
	} {
		environment(t, map[string]string{"RETRY_WORKER_SMTP_URL": user, "RETRY_WORKER_MAIL_FROM": "a@b", "RETRY_WORKER_SMTP_PASSWORD_FILE": "/p"})
		if got := problems(t); len(got) != 1 || !strings.HasPrefix(got[0], name+line) {
			t.Errorf("%s: got %q, want %q", user, got, line)
		}
	}
	for sender, line := range map[string]string{
		"": "missing", "retry-worker": `"retry-worker"`, "a@b\r\nBcc: c@d": `"a@b\r\nBcc: c@d"`, "a@b, c@d": `"a@b, c@d"`, "joão@hospital.example": `"joão@hospital.example"`,
	} {
		environment(t, map[string]string{"RETRY_WORKER_SMTP_URL": "smtp://localhost", "RETRY_WORKER_MAIL_FROM": sender})
		if got := problems(t); len(got) != 1 || !strings.HasPrefix(got[0], from+line+", expected ") {
			t.Errorf("%q: got %q, want %q", sender, got, line)
		}
	}
}
