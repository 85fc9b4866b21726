package web

import (
	"net/netip"
	"testing"
)

// TestWhereRequestsMayGo: public addresses alone, unless others are named.
func TestWhereRequestsMayGo(t *testing.T) {
	var none Allowed
	for _, address := range []string{"1.1.1.1", "8.8.8.8", "177.66.55.44", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "192.167.1.1", "223.255.255.255",
		"2606:4700::1111", "2001:200::1", "2804:14c::1", "::ffff:8.8.8.8"} {
		if !none.allows(netip.MustParseAddr(address)) {
			t.Errorf("%s is refused", address)
		}
	}
	for _, address := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.9.9.9", "169.254.169.254", "172.16.0.1",
		"172.31.255.255", "192.0.0.1", "192.0.2.7", "192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1",
		"224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b::808:808",
		"64:ff9b:1::a00:1", "100::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "2002:7f00:1::", "2002:a00:1::1", "3fff::1",
		"fc00::1", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "ff0e::1", "5f00::1",
	} {
		if none.allows(netip.MustParseAddr(address)) {
			t.Errorf("%s is let through", address)
		}
	}
	some := Allowed{Networks: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd12::/16"), netip.MustParsePrefix("::1/128")}}
	for address, want := range map[string]bool{"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.2.0.1": false, "fd12::7": true, "fd13::7": false, "::1": true, "127.0.0.1": false} {
		if got := some.allows(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %t, want %t", address, got, want)
		}
	}
}
