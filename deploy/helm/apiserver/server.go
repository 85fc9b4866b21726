package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// server is a kube-apiserver with its etcd. Both end with this process: stopping them in order takes seconds, and saves nothing.
type server struct {
	url   string
	token string
	ended chan error
}

func start(ctx context.Context, dir string) (*server, error) {
	s := &server{token: rand.Text(), ended: make(chan error, 1)}
	store, err := startStore(dir)
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s.url = fmt.Sprintf("https://127.0.0.1:%d", port)
	key, tokens := filepath.Join(dir, "service-accounts.key"), filepath.Join(dir, "tokens.csv")
	if err := writeKey(key); err != nil {
		return nil, err
	}
	if err := os.WriteFile(tokens, []byte(s.token+`,chart,chart,"system:masters"`+"\n"), 0o600); err != nil {
		return nil, err
	}
	command := app.NewAPIServerCommand()
	command.SetArgs([]string{
		"--etcd-servers=" + store, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--cert-dir=" + dir,
		"--service-cluster-ip-range=10.0.0.0/16", "--token-auth-file=" + tokens, "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + key, "--service-account-signing-key-file=" + key,
		"--disable-admission-plugins=ServiceAccount", // a dry run makes none, and no controller runs that would
		"-v=0",
	})
	command.SilenceUsage = true
	go func() { s.ended <- command.ExecuteContext(ctx) }()
	return s, nil
}

func startStore(dir string) (address string, err error) {
	config := embed.NewConfig()
	config.Dir, config.LogLevel, config.UnsafeNoFsync = filepath.Join(dir, "etcd"), "error", true
	client, err := freeURL()
	if err != nil {
		return "", err
	}
	peer, err := freeURL()
	if err != nil {
		return "", err
	}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return "", err
	}
	<-etcd.Server.ReadyNotify()
	return client.String(), nil
}

func freeURL() (url.URL, error) {
	port, err := freePort()
	return url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)}, err
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil //nolint:forcetypeassert // of a TCP listener
}

func writeKey(path string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600)
}
