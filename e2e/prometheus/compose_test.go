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

// compose is what a test reads of docker-compose.yml.
type compose struct {
	Services map[string]struct {
		Image, Build string
		Environment  map[string]string
		Volumes      []string
		Ports        []string
	}
	Volumes map[string]any
}

func readCompose(t *testing.T) compose {
	t.Helper()
	var c compose
	readYAML(t, root+"/docker-compose.yml", &c)
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

// TestComposeMountsWhatIsThere: every folder of the tree that a service sees is there and cannot be written, every volume is
// declared, every image has a version, and nothing listens beyond this machine.
func TestComposeMountsWhatIsThere(t *testing.T) {
	c := readCompose(t)
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			parts := strings.Split(v, ":")
			if _, declared := c.Volumes[parts[0]]; declared {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, parts[0])); err != nil || !strings.HasPrefix(parts[0], "./") {
				t.Errorf("%s mounts %s, which is neither a volume nor in the tree (%v)", name, v, err)
			}
			if len(parts) != 3 || parts[2] != "ro" {
				t.Errorf("%s may write %s", name, parts[0])
			}
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s listens at %s, for everybody", name, port)
			}
		}
		if _, tag, _ := strings.Cut(s.Image, ":"); s.Build == "" && (tag == "" || tag == "latest") {
			t.Errorf("%s has the image %q, without a version", name, s.Image)
		}
	}
}

// TestComposePrometheus: the configuration is where the image looks for it, promtool accepts it with the rules beside it, and
// what it scrapes are services.
func TestComposePrometheus(t *testing.T) {
	c := readCompose(t)
	config := c.mounted(t, "prometheus", "/etc/prometheus/prometheus.yml")
	if config == "" {
		t.Fatal("nothing is mounted at /etc/prometheus")
	}
	promtool(t, "check", "config", filepath.Base(config))
	var p struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			JobName       string                       `yaml:"job_name"`
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	readYAML(t, config, &p)
	jobs := map[string]string{}
	for _, s := range p.ScrapeConfigs {
		service, port, _ := strings.Cut(s.StaticConfigs[0].Targets[0], ":")
		if !slices.ContainsFunc(c.Services[service].Ports, func(published string) bool { return strings.HasSuffix(published, ":"+port) }) {
			t.Errorf("Prometheus scrapes %s:%s, which no service has", service, port)
		}
		jobs[s.JobName] = service
	}
	if jobs[workerJob] == "" || jobs[engineJob] == "" {
		t.Errorf("Prometheus scrapes %v, expected %s and %s", jobs, workerJob, engineJob)
	}
	if matched, err := filepath.Glob(filepath.Join(filepath.Dir(config), p.RuleFiles[0])); err != nil || len(matched) != len(ruleFiles(t)) {
		t.Errorf("Prometheus loads %q (%v), expected every rule file", matched, err)
	}
}

// TestComposeGrafana: the data source is Prometheus's address, and the dashboards are where their provider looks.
func TestComposeGrafana(t *testing.T) {
	c := readCompose(t)
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
