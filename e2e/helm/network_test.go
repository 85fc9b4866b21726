package helm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestNetworkPolicy: out goes what the values need and no more; in comes who scrapes, and with tokens who uses the console.
func TestNetworkPolicy(t *testing.T) {
	const names = "53/UDP 53/TCP"
	for _, row := range []struct{ set, out, in string }{
		{"", names + " 26500/TCP", "ops"},
		{"zeebe.address=zeebe:26600", names + " 26600/TCP", "ops"},
		{"zeebe.restAddress=https://zeebe:8443/cluster", names + " 8443/TCP", "ops"},
		{"zeebe.address=[fd00::1]:26600", names + " 26600/TCP", "ops"},
		{"zeebe.auth.existingSecret=a", names + " 26500/TCP 443/TCP", "ops"},
		{"zeebe.auth.existingSecret=a;zeebe.auth.authorizationServerUrl=http://keycloak/token", names + " 26500/TCP 80/TCP", "ops"},
		{"zeebe.auth.existingSecret=a;zeebe.auth.authorizationServerUrl=https://[fd00::1]:8443/token", names + " 26500/TCP 8443/TCP", "ops"},
		{"database.url=postgres://a:b@pg/c", names + " 26500/TCP 5432/TCP", "ops"},
		{"database.url=postgresql://a:b@pg:6432/c?x=:1", names + " 26500/TCP 6432/TCP", "ops"},
		{"database.existingSecret=a;database.port=6432", names + " 26500/TCP 6432/TCP", "ops"},
		{"events.url=nats://nats", names + " 26500/TCP 4222/TCP", "ops"},
		{"events.existingSecret=a;events.port=4333", names + " 26500/TCP 4333/TCP", "ops"},
		{"notify.smtp.url=smtps://u@mail;notify.smtp.from=a@b", names + " 26500/TCP 465/TCP", "ops"},
		{"notify.smtp.url=smtp://u@mail:2525;notify.smtp.from=a@b", names + " 26500/TCP 2525/TCP", "ops"},
		{"notify.webhooks.enabled=true", names + " 26500/TCP 443/TCP", "ops"},
		{"tracing.endpoint=http://collector:4318", names + " 26500/TCP 4318/TCP", "ops"},
		{"auth.existingSecret=a", names + " 26500/TCP", "ops http"},
		{"auth.oidc.issuer=https://login:8443/realm;auth.oidc.existingSecret=a", names + " 26500/TCP 8443/TCP", "ops http"},
		{"networkPolicy.dnsPorts={5353}", "5353/UDP 5353/TCP 26500/TCP", "ops"},
	} {
		policy := renderOne(t, split(row.set)...).one(t, "NetworkPolicy")
		var out, in []string
		for _, rule := range list(policy, "spec", "egress") {
			for _, port := range list(rule, "ports") {
				out = append(out, text(port, "port")+"/"+text(port, "protocol"))
			}
			if at(rule, "to") != nil {
				t.Errorf("%s: a rule names peers, expected the ports alone: %v", row.set, rule)
			}
		}
		for _, rule := range list(policy, "spec", "ingress") {
			in = append(in, text(rule, "ports", 0, "port"))
			if len(list(rule, "from")) == 0 {
				t.Errorf("%s: everybody, from outside the cluster too, may come in: %v", row.set, rule)
			}
		}
		if got := strings.Join(out, " "); got != row.out {
			t.Errorf("%s: lets out %s, expected %s", row.set, got, row.out)
		}
		if got := strings.Join(in, " "); got != row.in {
			t.Errorf("%s: lets in to %s, expected %s", row.set, got, row.in)
		}
		if got := fmt.Sprint(at(policy, "spec", "policyTypes")); got != "[Ingress Egress]" {
			t.Errorf("%s: holds for %s", row.set, got)
		}
	}
}

func split(set string) []string {
	if set == "" {
		return nil
	}
	return strings.Split(set, ";")
}

// TestPeers: each dependency has the peers that its value names, at its port.
func TestPeers(t *testing.T) {
	r := render(t, helmCase{Name: "peers", Values: peersOfAll})[0]
	if r.Error != "" {
		t.Fatal(r.Error)
	}
	policy := r.one(t, "NetworkPolicy")
	got := map[string]string{}
	for _, direction := range []string{"egress", "ingress"} {
		for _, rule := range list(policy, "spec", direction) {
			for _, side := range []string{"to", "from"} {
				if app := text(rule, side, 0, "podSelector", "matchLabels", "app"); app != "" {
					got[direction+" "+app] = text(rule, "ports", 0, "port")
				}
			}
		}
	}
	want := map[string]string{
		"egress dns": "53", "egress zeebe": "26500", "egress keycloak": "80", "egress postgresql": "5432", "egress nats": "4222", "egress mail": "587",
		"egress chat": "443", "egress collector": "4318", "egress more": "", "ingress prometheus": "ops", "ingress ingress": "http", "ingress more": "",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}
