package config

import (
	"fmt"
	"strconv"
	"strings"

	"retry-worker/internal/smallfile"
)

// defaultDatabase is what the tag of workerEnv.DatabaseURL says.
const defaultDatabase = "sqlite:retry-worker.db"

// maxSecretBytes of a file that holds a secret.
const maxSecretBytes = 64 << 10

// secret returns a value that may stand in a file instead: Docker and Kubernetes hand secrets over as files, and a
// variable is seen by whoever may look at the process. preset is what value is where nobody set it. White space around
// it is none of it.
func (c *checker) secret(name, value, preset, path string) string {
	if path == "" {
		return value
	}
	if value != preset {
		c.problems = append(c.problems, fmt.Sprintf("%s and %s_FILE are both set, expected one of them", name, name))
		return value
	}
	content, err := smallfile.ReadSecret(path, maxSecretBytes)
	text := strings.TrimSpace(string(content))
	switch {
	case err != nil:
		c.add(name+"_FILE", strconv.Quote(path), "a readable file with the value of "+name+" ("+err.Error()+")")
	case text == "":
		c.add(name+"_FILE", strconv.Quote(path), "a file with the value of "+name+"; it is empty")
	}
	return text
}

// journal returns where that is kept.
func (c *checker) journal(w *workerEnv) string {
	wrong := len(c.problems)
	url := c.secret("RETRY_WORKER_DATABASE_URL", w.DatabaseURL, defaultDatabase, w.DatabaseURLFile)
	if len(c.problems) == wrong {
		c.database("RETRY_WORKER_DATABASE_URL", url)
	}
	return url
}

// certificate returns the console's certificate and key, which go together; what is in them, the web server says.
func (c *checker) certificate(w *workerEnv) (certFile, keyFile string) {
	switch {
	case w.TlsCertFile != "" && w.TlsKeyFile == "":
		c.add("RETRY_WORKER_TLS_KEY_FILE", "missing", "the file with the key of RETRY_WORKER_TLS_CERT_FILE")
	case w.TlsCertFile == "" && w.TlsKeyFile != "":
		c.add("RETRY_WORKER_TLS_CERT_FILE", "missing", "the file with the certificate of RETRY_WORKER_TLS_KEY_FILE")
	}
	return w.TlsCertFile, w.TlsKeyFile
}
