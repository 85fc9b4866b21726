package notify_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"os"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/notify"
	"retry-worker/internal/testkit"
)

// parts of a message as a mail program reads it.
func parts(t *testing.T, raw []byte) (mail.Header, map[string]string) {
	t.Helper()
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%v:\n%s", err, raw)
	}
	kind, parameters, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("%q, %v", m.Header.Get("Content-Type"), err)
	}
	found := map[string]string{}
	for r := multipart.NewReader(m.Body, parameters["boundary"]); ; {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return m.Header, found
		}
		testkit.Must(t, err)
		kind, parameters, err := mime.ParseMediaType(p.Header.Get("Content-Type"))
		if err != nil || !strings.EqualFold(parameters["charset"], "UTF-8") || p.Header.Get("Content-Transfer-Encoding") != "quoted-printable" {
			t.Errorf("part %v, %v", p.Header, err)
		}
		text, err := io.ReadAll(quotedprintable.NewReader(p))
		testkit.Must(t, err)
		found[kind] = string(text)
	}
}

// TestMail: a notice is the same mail whenever it is sent, in letters that every server takes. What it says is in testdata (TestMails).
func TestMail(t *testing.T) {
	b := openMailbox(t, mailOptions{})
	for range 2 {
		testkit.Must(t, send(t, b.mailer(notify.Plaintext), "ti@hospital.example"))
	}
	got := b.deliveries()
	if len(got) != 2 || got[0].from != "retry-worker@hospital.example" || strings.Join(got[0].to, " ") != "ti@hospital.example" ||
		!bytes.Equal(got[0].message, got[1].message) || bytes.ContainsFunc(got[0].message, func(r rune) bool { return r > '~' }) {
		t.Errorf("%d deliveries: %+v", len(got), got)
	}
}

func TestMailIsEncrypted(t *testing.T) {
	secret := secretFile(t, mailPassword)
	for name, tt := range map[string]struct {
		options    mailOptions
		encryption notify.Encryption
		user, says string
		encrypted  bool
	}{
		"at once":                          {mailOptions{implicit: true}, notify.ImplicitTLS, "", "", true},
		"at once, with a log-in":           {mailOptions{implicit: true, login: true}, notify.ImplicitTLS, mailUser, "", true},
		"as it must be":                    {mailOptions{startTLS: true}, notify.RequiredTLS, "", "", true},
		"as it must be, with a log-in":     {mailOptions{startTLS: true, login: true}, notify.RequiredTLS, mailUser, "", true},
		"not, though it could be":          {mailOptions{startTLS: true}, notify.Plaintext, "", "", false},
		"not, with a log-in":               {mailOptions{login: true}, notify.Plaintext, mailUser, "", false},
		"not, though it must be":           {mailOptions{}, notify.RequiredTLS, "", "does not support STARTTLS", false},
		"not by a server that cannot":      {mailOptions{}, notify.ImplicitTLS, "", "connect to the mail server", false},
		"and the log-in is that of nobody": {mailOptions{startTLS: true, login: true}, notify.RequiredTLS, "nobody", "535", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := openMailbox(t, tt.options)
			s := b.server(tt.encryption)
			if s.User = tt.user; s.User != "" {
				s.PasswordFile = secret
			}
			err := send(t, mailerOf(s), "ti@hospital.example")
			switch {
			case tt.says == "" && (err != nil || len(b.deliveries()) != 1 || (b.encrypted == 1) != tt.encrypted):
				t.Errorf("%v, %d encrypted, %d delivered", err, b.encrypted, len(b.deliveries()))
			case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says) || len(b.deliveries()) != 0):
				t.Errorf("got %v, want %q", err, tt.says)
			}
			if err != nil && strings.Contains(err.Error(), mailPassword) {
				t.Errorf("the password is told: %v", err)
			}
		})
	}
	t.Run("not to one that nobody vouches for", func(t *testing.T) {
		s := openMailbox(t, mailOptions{startTLS: true}).server(notify.RequiredTLS)
		s.CAFile = ""
		if err := send(t, mailerOf(s), "ti@hospital.example"); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("with a password that changes", func(t *testing.T) {
		s := openMailbox(t, mailOptions{startTLS: true, login: true}).server(notify.RequiredTLS)
		s.User, s.PasswordFile = mailUser, secretFile(t, "old")
		m := mailerOf(s)
		err := send(t, m, "ti@hospital.example")
		if f, ok := errors.AsType[*notify.Failure](err); !ok || !f.Refused {
			t.Errorf("the old one: %v", err)
		}
		testkit.Must(t, os.WriteFile(s.PasswordFile, []byte(mailPassword+"\n"), 0o600))
		if err := send(t, m, "ti@hospital.example"); err != nil {
			t.Errorf("the new one: %v", err)
		}
		if err := m.Check(t.Context()); err != nil {
			t.Errorf("Check: %v", err)
		}
	})
}

// TestTakenIsTaken: a server that breaks off once it has the message gets it no second time.
func TestTakenIsTaken(t *testing.T) {
	b := openMailbox(t, mailOptions{})
	b.set(func() { b.onReset = func(conn net.Conn) { _ = conn.Close() } })
	testkit.Must(t, send(t, b.mailer(notify.Plaintext), "ti@hospital.example"))
}

// TestMailServers that do not take a message, each in its own way, which is told without the recipient's name.
func TestMailServers(t *testing.T) {
	for name, tt := range map[string]struct {
		set     func(b *mailbox)
		refused bool
		says    string
	}{
		"refuses the sender":          {func(b *mailbox) { b.onMail = func() error { return says(550, "who are you") } }, true, "550"},
		"is busy":                     {func(b *mailbox) { b.onMail = func() error { return says(421, "too many connections") } }, false, "421"},
		"refuses the message":         {func(b *mailbox) { b.onData = func(net.Conn) error { return says(554, "looks like spam") } }, true, "554"},
		"has no room for the message": {func(b *mailbox) { b.onData = func(net.Conn) error { return says(452, "disk full") } }, false, "452"},
		"drops in DATA":               {func(b *mailbox) { b.onData = drop }, false, "send the message"},
		"knows no such recipient":     {func(b *mailbox) { b.onRcpt = refusing("ti@", 550, b.onRcpt) }, true, "550"},
		"has no room for the mailbox": {func(b *mailbox) { b.onRcpt = refusing("ti@", 452, b.onRcpt) }, false, "452"},
	} {
		t.Run(name, func(t *testing.T) {
			b := openMailbox(t, mailOptions{})
			b.set(func() { tt.set(b) })
			err := send(t, b.mailer(notify.Plaintext), "ti@hospital.example")
			f, _ := errors.AsType[*notify.Failure](err)
			if f == nil || f.Refused != tt.refused || !strings.Contains(f.Error(), tt.says) || strings.Contains(f.Error(), "ti@") || len(b.deliveries()) != 0 {
				t.Errorf("%v: want refused %t, %q", err, tt.refused, tt.says)
			}
		})
	}
	t.Run("is not there", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		testkit.Must(t, err)
		l.Close()
		s := notify.MailServer{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, Encryption: notify.Plaintext, From: mail.Address{Address: "a@b.example"}}
		err = send(t, mailerOf(s), "ti@hospital.example")
		if f, ok := errors.AsType[*notify.Failure](err); !ok || f.Refused || !strings.Contains(f.Error(), "connection refused") {
			t.Errorf("got %v", err)
		}
	})
}

// TestHangingMailServers hold nobody longer than its context lasts, wherever they hang.
func TestHangingMailServers(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	hangs := func(where string) func(t *testing.T) notify.MailServer {
		return func(t *testing.T) notify.MailServer {
			b := openMailbox(t, mailOptions{})
			wait := func() error { <-release; return says(421, "late") }
			b.set(func() {
				switch where {
				case "MAIL":
					b.onMail = wait
				case "RCPT":
					b.onRcpt = func(string) error { return wait() }
				case "DATA":
					b.onData = func(net.Conn) error { return wait() }
				}
			})
			return b.server(notify.Plaintext)
		}
	}
	for name, server := range map[string]func(t *testing.T) notify.MailServer{
		"greeting": func(t *testing.T) notify.MailServer {
			return notify.MailServer{Host: "127.0.0.1", Port: silent(t), Encryption: notify.Plaintext, From: mail.Address{Address: "a@b.example"}}
		},
		"TLS": func(t *testing.T) notify.MailServer {
			return notify.MailServer{Host: "127.0.0.1", Port: silent(t), Encryption: notify.ImplicitTLS, From: mail.Address{Address: "a@b.example"}}
		},
		"MAIL": hangs("MAIL"), "RCPT": hangs("RCPT"), "DATA": hangs("DATA"),
	} {
		t.Run(name, func(t *testing.T) {
			m := mailerOf(server(t))
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			began := time.Now()
			err := m.Send(ctx, "id", newsNotice(), "ti@hospital.example")
			f, _ := errors.AsType[*notify.Failure](err)
			if took := time.Since(began); f == nil || f.Refused || took > 5*time.Second {
				t.Errorf("after %s: %v", took, err)
			}
			t.Log(f)
		})
	}
}

// TestHeadersCannotBeInjected, whatever stands in the outbox.
func TestHeadersCannotBeInjected(t *testing.T) {
	b := openMailbox(t, mailOptions{})
	n := newsNotice()
	n.Data.Team = "ti\r\nBcc: alguem@mal.example\r\n\r\n<b>x"
	n.Data.New.Top[0].Pattern = "a\r\n.\r\nMAIL FROM:<x@mal.example>\r\n"
	n.Data.New.Top[0].Reason = "X\nSubject: y"
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := b.mailer(notify.Plaintext).Send(ctx, "id", n, "ti@hospital.example")
	testkit.Must(t, err)
	got := b.deliveries()
	if len(got) != 1 || len(got[0].to) != 1 {
		t.Fatalf("%+v", got)
	}
	head, found := parts(t, got[0].message)
	if head.Get("Bcc") != "" || len(head["Subject"]) != 1 || len(found) != 2 || strings.Contains(found["text/html"], "<b>x") {
		t.Errorf("head %v, parts %v", head, found)
	}
}
