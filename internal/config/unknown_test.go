package config_test

import (
	"slices"
	"strings"
	"testing"
)

func TestUnknownNamesAreRefused(t *testing.T) {
	const line = " is set, expected one of the names that `retry-worker serve --help` lists"
	for name, meant := range map[string]string{
		"RETRY_WORKER_LOGLEVEL":          "RETRY_WORKER_LOG_LEVEL",
		"RETRY_WORKER_LOG_LEVELS":        "RETRY_WORKER_LOG_LEVEL",
		"RETRY_WORKER_TENANT_ID":         "RETRY_WORKER_TENANT_IDS",
		"RETRY_WORKER_MAX_JOBS":          "RETRY_WORKER_MAX_JOBS_ACTIVE",
		"RETRY_WORKER_OPS_ADDRESS":       "RETRY_WORKER_OPS_ADDR",
		"RETRY_WORKER_CONCURENCY":        "RETRY_WORKER_CONCURRENCY",
		"RETRY_WORKER_SHUTDOWN_TIME_OUT": "RETRY_WORKER_SHUTDOWN_TIMEOUT",
		"RETRY_WORKER_JOB_TIMOEUT":       "RETRY_WORKER_JOB_TIMEOUT",
		"RETRY_WORKER_ZEEBE_ADDRESS":     "", // nothing near
		"RETRY_WORKER_X":                 "",
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, map[string]string{name: "value-of-nobody"})
			want := name + line
			if meant != "" {
				want += "; did you mean " + meant + "?"
			}
			if got := problems(t); !slices.Equal(got, []string{want}) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
			}
		})
	}
}

func TestOtherProgramsNamesAreLeftAlone(t *testing.T) {
	environment(t, map[string]string{
		"RETRY_WORKERS": "1", "ZEEBE_BROKER_NETWORK_HOST": "0.0.0.0", "ZEEBE_CLOCK_CONTROLLED": "maybe", "MY_RETRY_WORKER_PORT": "1",
	})
	load(t)
}

func TestServiceLinksAreAccepted(t *testing.T) {
	for service, prefix := range map[string]string{
		"retry-worker":               "RETRY_WORKER_",
		"retry-worker-postgresql":    "RETRY_WORKER_POSTGRESQL_",
		"retry-worker-nats-headless": "RETRY_WORKER_NATS_HEADLESS_",
		"zeebe":                      "ZEEBE_",
	} {
		t.Run(service, func(t *testing.T) {
			environment(t, nil)
			for name, value := range map[string]string{
				"SERVICE_HOST":        "10.96.0.17",
				"SERVICE_PORT":        "26500",
				"SERVICE_PORT_HTTP":   "8095",
				"SERVICE_PORT_OPS_2":  "9095",
				"PORT":                "tcp://10.96.0.17:26500",
				"PORT_26500_TCP":      "tcp://10.96.0.17:26500",
				"PORT_26500_TCP_PORT": "26500", "PORT_26500_TCP_PROTO": "tcp", "PORT_26500_TCP_ADDR": "10.96.0.17",
				"PORT_53_UDP": "udp://10.96.0.17:53", "PORT_53_UDP_PROTO": "udp",
				"PORT_38412_SCTP": "sctp://10.96.0.17:38412",
			} {
				t.Setenv(prefix+name, value)
			}
			if s := load(t); s.Engine.Address != "127.0.0.1:26500" {
				t.Errorf("engine: got %s, want the default", s.Engine.Address)
			}
		})
	}
}

// What only looks like a service link is a setting that somebody believes in.
func TestPortsThatAreNoLinksAreRefused(t *testing.T) {
	for _, name := range []string{"RETRY_WORKER_PORT", "RETRY_WORKER_OPS_PORT"} {
		environment(t, map[string]string{name: "9095"})
		got := problems(t)
		if len(got) != 1 || !strings.HasPrefix(got[0], name+" is set") {
			t.Errorf("%s=9095: got %q, want it refused", name, got)
		}
	}
}
