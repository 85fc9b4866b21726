package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"retry-worker/internal/smallfile"
)

const (
	// dialTime bounds connection, greeting, TLS and log-in; talkTime everything behind it.
	dialTime, talkTime = 15 * time.Second, 40 * time.Second
	// quitTime bounds the good-bye, which nobody waits for.
	quitTime = time.Second
	// maxSecret is the bytes of a file with a secret.
	maxSecret = 4096
)

// Encryption of a mail server's connection. The set is closed.
type Encryption string

// The encryptions.
const (
	ImplicitTLS   Encryption = "implicit"      // from the first byte on
	RequiredTLS   Encryption = "required"      // by STARTTLS, or nothing is sent
	Opportunistic Encryption = "opportunistic" // by STARTTLS where the server offers it
	Plaintext     Encryption = "none"
)

// MailServer is where e-mail is handed in.
type MailServer struct {
	Host       string
	Port       int
	Encryption Encryption
	// User is empty where nobody logs in; the password is in PasswordFile, which is read for each connection.
	User, PasswordFile string
	// CAFile is trusted instead of the system's authorities; empty: those. It is read for each connection.
	CAFile string
	From   mail.Address
}

// Mailer sends notices by e-mail. Safe for concurrent use.
type Mailer struct {
	server MailServer
	render *renderer
}

// NewMailer prepares a Mailer; it connects for each message.
func NewMailer(server MailServer, words Words, zone *time.Location) *Mailer {
	return &Mailer{server: server, render: &renderer{words: words, zone: zone}}
}

// Receipt is what became of a message to one recipient.
type Receipt struct {
	// Recipient is the address, or the URL, as the catalogue has it.
	Recipient string
	// Said is the server's answer where it took the message.
	Said string
	// Failure is nil where it did.
	Failure *Failure
}

// Send sends a notice to all of the addresses in one delivery; who is refused does not stop the others. The receipts
// are in the order of the addresses; the error is a *Failure of them all. to is the message's header, and may hold more
// than the addresses.
func (m *Mailer) Send(ctx context.Context, id string, n *Notice, header, addresses []string) ([]Receipt, error) {
	message, err := m.message(id, n, header)
	if err != nil {
		return nil, refused(fmt.Sprintf("compose an e-mail: %v", err))
	}
	t, err := m.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer t.close()
	return t.deliver(m.server.From.Address, addresses, message)
}

// message returns the e-mail's text, the same however often it is sent.
func (m *Mailer) message(id string, n *Notice, to []string) ([]byte, error) {
	v := m.render.view(n)
	plain, page, err := m.render.parts(v)
	if err != nil {
		return nil, err
	}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(&m.server.From)
	if err := msg.To(to...); err != nil {
		return nil, errors.New("an address of the team is none") // the library's error names it
	}
	_, domain, _ := strings.Cut(m.server.From.Address, "@")
	msg.SetMessageIDWithValue(id + "@" + domain)
	msg.SetDateWithValue(n.at())
	msg.Subject(v.Subject)
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no machine answers it
	msg.SetGenHeader("X-Auto-Response-Suppress", "All")
	msg.SetBoundary("part-" + id)
	msg.SetBodyString(gomail.TypeTextPlain, plain)
	msg.AddAlternativeString(gomail.TypeTextHTML, page)
	var b bytes.Buffer
	_, err = msg.WriteTo(&b)
	return b.Bytes(), err
}

// talk is one connection to the server.
type talk struct {
	client *smtp.Client
	conn   net.Conn
	stop   func() bool // ends the connection's guard
}

// dial connects, and logs in where the server's user is known.
func (m *Mailer) dial(ctx context.Context) (*talk, error) {
	trust, err := m.trust()
	if err != nil {
		return nil, refused("connect to the mail server: " + err.Error())
	}
	within, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	t := &talk{stop: func() bool { return true }}
	options := []gomail.Option{gomail.WithPort(m.server.Port), gomail.WithTimeout(dialTime), gomail.WithTLSConfig(trust),
		gomail.WithoutNoop(),
		gomail.WithTLSPolicy(m.policy()), gomail.WithHELO(helloName()),
		gomail.WithDialContextFunc(func(_ context.Context, network, address string) (net.Conn, error) {
			err := t.connect(within, network, address, m.server.Encryption == ImplicitTLS, trust)
			return t.conn, err
		})}
	login, err := m.login()
	if err != nil {
		return nil, refused("log in to the mail server: " + err.Error())
	}
	client, err := gomail.NewClient(m.server.Host, append(options, login...)...)
	if err != nil {
		return nil, refused("connect to the mail server: " + err.Error())
	}
	t.client, err = client.DialToSMTPClientWithContext(within)
	if err != nil {
		t.close()
		return nil, answered("connect to the mail server "+client.ServerAddr(), err)
	}
	_ = t.conn.SetDeadline(time.Now().Add(talkTime)) // a connection that is gone shows with the next command
	t.stop()
	t.guard(ctx)
	return t, nil
}

// connect opens the connection, which is closed when ctx ends: a server that hangs holds nobody up.
func (t *talk) connect(ctx context.Context, network, address string, encrypted bool, trust *tls.Config) (err error) {
	dialer := net.Dialer{}
	if encrypted {
		t.conn, err = (&tls.Dialer{NetDialer: &dialer, Config: trust}).DialContext(ctx, network, address)
	} else {
		t.conn, err = dialer.DialContext(ctx, network, address)
	}
	if err == nil {
		t.guard(ctx)
	}
	return err
}

func (t *talk) guard(ctx context.Context) {
	conn := t.conn
	t.stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
}

func (t *talk) close() {
	if t.conn == nil {
		return
	}
	if t.client != nil {
		_ = t.conn.SetDeadline(time.Now().Add(quitTime))
		_ = t.client.Quit() // what was taken is taken
	}
	t.stop()
	_ = t.conn.Close()
}

func (m *Mailer) policy() gomail.TLSPolicy {
	switch m.server.Encryption {
	case RequiredTLS:
		return gomail.TLSMandatory
	case Plaintext:
		return gomail.NoTLS
	default: // inside a TLS connection no server offers STARTTLS
		return gomail.TLSOpportunistic
	}
}

func (m *Mailer) trust() (*tls.Config, error) {
	roots, err := smallfile.Authorities("RETRY_WORKER_SMTP_CA_FILE", m.server.CAFile)
	return &tls.Config{ServerName: m.server.Host, MinVersion: tls.VersionTLS12, RootCAs: roots}, err
}

// login returns how to log in; none where nobody does. Without TLS a password is sent to this machine alone, which the
// settings see to.
func (m *Mailer) login() ([]gomail.Option, error) {
	if m.server.User == "" {
		return nil, nil
	}
	password, err := secret(m.server.PasswordFile)
	if err != nil {
		return nil, fmt.Errorf("RETRY_WORKER_SMTP_PASSWORD_FILE: %w", err)
	}
	how := gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover)
	if m.server.Encryption == Plaintext || m.server.Encryption == Opportunistic {
		how = gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1,
			gomail.SMTPAuthPlainNoEnc, gomail.SMTPAuthLoginNoEnc)
	}
	return []gomail.Option{how, gomail.WithUsername(m.server.User), gomail.WithPassword(password)}, nil
}

// secret returns what stands in a file, without the space around it.
func secret(path string) (string, error) {
	content, err := smallfile.ReadSecret(path, maxSecret)
	if err != nil {
		return "", fmt.Errorf("the secret's file cannot be read: %w", err)
	}
	text := strings.TrimSpace(string(content))
	if text == "" {
		return "", errors.New("the secret's file is empty")
	}
	return text, nil
}

// helloName returns this machine's, where it is a name that servers take.
func helloName() string {
	host, err := os.Hostname()
	if err != nil || strings.ContainsFunc(host, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.'
	}) || host == "" {
		return "localhost"
	}
	return host
}

// deliver hands the message in, once for all who are taken.
func (t *talk) deliver(from string, addresses []string, message []byte) ([]Receipt, error) {
	if err := t.client.Mail("<" + from + ">"); err != nil {
		return nil, answered("hand in the sender", err)
	}
	receipts := make([]Receipt, len(addresses))
	taken := 0
	for i, address := range addresses {
		receipts[i].Recipient = address
		if err := t.client.Rcpt("<" + address + ">"); err != nil {
			receipts[i].Failure = answered("recipient "+strconv.Itoa(i+1)+" of "+strconv.Itoa(len(addresses)),
				anonymous(err, address))
			continue
		}
		taken++
	}
	if taken == 0 {
		return receipts, nil
	}
	said, err := t.data(message)
	for i := range receipts {
		switch r := &receipts[i]; {
		case r.Failure != nil:
		case err != nil:
			r.Failure = answered("hand in the message", err)
		default:
			r.Said = said
		}
	}
	return receipts, nil
}

// anonymous returns a server's answer without the recipient, whom servers like to repeat: logs name nobody.
func anonymous(err error, address string) error {
	said, ok := errors.AsType[*textproto.Error](err)
	if !ok {
		return err
	}
	local, _, _ := strings.Cut(address, "@")
	text := strings.NewReplacer(address, "[E-MAIL]", local, "[E-MAIL]").Replace(said.Msg)
	return &textproto.Error{Code: said.Code, Msg: text}
}

func (t *talk) data(message []byte) (said string, err error) {
	w, err := t.client.Data()
	if err != nil {
		return "", err
	}
	if _, err := w.Write(message); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	if d, ok := w.(*smtp.DataCloser); ok {
		said = d.ServerResponse()
	}
	return strings.Join(strings.Fields(said), " "), nil
}
