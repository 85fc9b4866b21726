package prometheus_test

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"retry-worker/internal/testkit"
)

const (
	composeFile = "docker-compose.yml"
	vendorFile  = "docker-compose.camunda.yml" // beside it
)

// compose is what a test reads of a compose file.
type compose struct {
	Services map[string]service
	Volumes  map[string]any
}

type service struct {
	Image       string
	Environment map[string]string
	Volumes     []string
	Ports       []string
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
}

func readCompose(t *testing.T, file string) compose {
	t.Helper()
	var c compose
	readYAML(t, root+"/"+file, &c)
	return c
}

// mounted is the path in the tree of what a service sees at a path; empty where nothing is mounted there.
func (c *compose) mounted(t *testing.T, service, at string) string {
	t.Helper()
	for _, v := range c.Services[service].Volumes {
		parts := strings.Split(v, ":")
		if below, found := strings.CutPrefix(at, parts[1]); found && strings.HasPrefix(parts[0], "./") {
			return filepath.Join(root, parts[0], below)
		}
	}
	return ""
}

// TestCompose: every folder of the tree that a service sees is there and cannot be written, every volume is declared, every
// image has a version, nothing listens beyond this machine, and no service has a right or may get one. Of the vendor's engine,
// which is not run here, the container may be written.
func TestCompose(t *testing.T) {
	ours := readCompose(t, composeFile)
	for _, file := range []string{composeFile, vendorFile} {
		c := readCompose(t, file)
		for name, s := range c.Services {
			if _, there := ours.Services[name]; !there {
				t.Errorf("%s changes %s, which %s does not have", file, name, composeFile)
			}
			powerless := slices.Equal(s.CapDrop, []string{"ALL"}) && slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"})
			if whole := file == composeFile; whole && !s.ReadOnly || (whole || name == "engine") && !powerless {
				t.Errorf("%s: %s is not hardened: %+v", file, name, s)
			}
			for _, v := range s.Volumes {
				parts := strings.Split(v, ":")
				if _, declared := c.Volumes[parts[0]]; declared {
					continue
				}
				if _, err := os.Stat(filepath.Join(root, parts[0])); err != nil || !strings.HasPrefix(parts[0], "./") {
					t.Errorf("%s: %s mounts %s, which is neither a volume nor in the tree (%v)", file, name, v, err)
				}
				if len(parts) != 3 || parts[2] != "ro" {
					t.Errorf("%s: %s may write %s", file, name, parts[0])
				}
			}
			for _, port := range s.Ports {
				if !strings.HasPrefix(port, "127.0.0.1:") {
					t.Errorf("%s: %s listens at %s, for everybody", file, name, port)
				}
			}
			if _, tag, _ := strings.Cut(s.Image, ":"); s.Image != "" && (tag == "" || tag == "latest") {
				t.Errorf("%s: %s has the image %q, without a version", file, name, s.Image)
			}
		}
	}
}

// TestComposeGrafana: the data source is Prometheus's address, and the dashboards are where their provider looks.
func TestComposeGrafana(t *testing.T) {
	c := readCompose(t, composeFile)
	provisioning := c.mounted(t, "grafana", "/etc/grafana/provisioning")
	if provisioning == "" {
		t.Fatal("nothing is mounted at /etc/grafana/provisioning")
	}
	var sources struct {
		Datasources []struct {
			Type, URL string
			IsDefault bool `yaml:"isDefault"`
		}
	}
	readYAML(t, filepath.Join(provisioning, "datasources/prometheus.yaml"), &sources)
	if len(sources.Datasources) != 1 || sources.Datasources[0].Type != "prometheus" || !sources.Datasources[0].IsDefault {
		t.Fatalf("the data sources are %+v", sources.Datasources)
	}
	address, err := url.Parse(sources.Datasources[0].URL)
	testkit.Must(t, err)
	if ports := c.Services[address.Hostname()].Ports; len(ports) == 0 || !strings.HasSuffix(ports[0], ":"+address.Port()) {
		t.Errorf("the data source is at %s, which no service has", address)
	}
	var providers struct {
		Providers []struct{ Options struct{ Path string } }
	}
	readYAML(t, filepath.Join(provisioning, "dashboards/retry-worker.yaml"), &providers)
	folder := providers.Providers[0].Options.Path
	if there, _ := filepath.Glob(c.mounted(t, "grafana", folder) + "/*.json"); len(there) != len(dashboards(t)) {
		t.Errorf("Grafana sees %d dashboards in %s, expected %d", len(there), folder, len(dashboards(t)))
	}
	home := c.Services["grafana"].Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	if _, err := os.Stat(c.mounted(t, "grafana", home)); err != nil || path.Dir(home) != folder {
		t.Errorf("Grafana's home is %s: %v", home, err)
	}
}
