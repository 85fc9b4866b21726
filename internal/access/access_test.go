package access_test

import (
	"strings"
	"testing"

	"retry-worker/internal/access"
)

func TestRoles(t *testing.T) {
	for _, tt := range []struct {
		name string
		may  map[access.Action]bool
	}{
		{"viewer", map[access.Action]bool{access.Read: true}},
		{"operator", map[access.Action]bool{access.Read: true, access.Report: true, access.Order: true, access.Review: true, access.Bulk: true}},
		{"admin", map[access.Action]bool{access.Read: true, access.Report: true, access.Order: true, access.Review: true, access.Bulk: true, access.Restart: true, access.Erase: true, access.Teach: true, access.Handover: true}},
	} {
		role, err := access.ParseRole(tt.name)
		if err != nil || string(role) != tt.name {
			t.Errorf("%s: got %v, %v", tt.name, role, err)
		}
		for _, a := range []access.Action{"", "nonsense", access.Read, access.Report, access.Order, access.Review, access.Bulk, access.Restart, access.Erase, access.Teach, access.Handover} {
			if got := role.May(a); got != tt.may[a] {
				t.Errorf("%s may %v: %v", role, a, got)
			}
		}
	}
	for _, role := range []access.Role{"", "nobody", "Admin"} {
		if role.May(access.Read) {
			t.Errorf("%v may read", role)
		}
	}
	for _, name := range []string{"", "Admin", "nobody", "root", "viewer "} {
		if _, err := access.ParseRole(name); err == nil {
			t.Errorf("%q is a role", name)
		}
	}
}

// Whose dead letters somebody may act on: yes, or no.
func TestTeams(t *testing.T) {
	const (
		free  = access.Teams("")
		bound = access.Teams("faturamento,ti")
	)
	for _, tt := range []struct {
		role  access.Role
		teams access.Teams
		// of the team ti, of another, whose name is the beginning of one, of none in particular (which is of all)
		read, review, bulk, restart string
	}{
		{access.Viewer, free, "yes yes yes", "no no no", "no no no", "no no no"},
		{access.Viewer, bound, "yes yes yes", "no no no", "no no no", "no no no"},
		{access.Operator, free, "yes yes yes", "yes yes yes", "no no no", "no no no"},
		{access.Operator, bound, "yes yes yes", "yes no no", "yes no no", "no no no"},
		{access.Operator, access.NoTeam, "yes yes yes", "no no no", "no no no", "no no no"},
		{access.Admin, free, "yes yes yes", "yes yes yes", "yes yes yes", "yes yes yes"},
		{access.Admin, bound, "yes yes yes", "yes no no", "yes no no", "yes no no"},
		{"", free, "no no no", "no no no", "no no no", "no no no"},
		{"", bound, "no no no", "no no no", "no no no", "no no no"},
	} {
		who := access.Identity{Name: "maria", Role: tt.role, Teams: tt.teams}
		for action, want := range map[access.Action]string{access.Read: tt.read, access.Review: tt.review, access.Bulk: tt.bulk, access.Restart: tt.restart} {
			var got []string
			for _, team := range []string{"ti", "fatura", ""} {
				got = append(got, map[bool]string{true: "yes", false: "no"}[who.May(action, team)])
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%v of %q: %v is %s, want %s", who.Role, who.Teams, action, got, want)
			}
		}
	}
}

func TestMayServeWithoutTokens(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:8095": true, "127.8.9.10:0": true, "[::1]:8095": true, "localhost:8095": true, "[::ffff:127.0.0.1]:80": true,
		"0.0.0.0:8095": false, ":8095": false, "[::]:8095": false, "10.0.0.7:8095": false, "retry.example:8095": false,
		"127.0.0.1.evil:8095": false, "localhost.evil:8095": false, "nonsense": false, "": false,
	} {
		if err := access.MayServeWithoutTokens(addr); (err == nil) != want {
			t.Errorf("%q: %v", addr, err)
		}
	}
}
