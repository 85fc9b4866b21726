package catalogue

import (
	"testing"
	"time"
)

// TestCalendars: what a file's calendars become, for destinations and for policies.
func TestCalendars(t *testing.T) {
	c, err := Load("testdata/calendars.yaml")
	mustDo(t, err)
	unimed := c.Destinations.Of("unimed-sp").Calendar
	for at, want := range map[string]string{
		"2026-03-05T08:00": "",
		"2026-03-05T18:00": "outside days 1-5,31, mon-fri, 08:00-18:00; business days 9, 22:00-04:00",
		"2026-12-30T10:00": "Recesso do portal",
		"2026-02-17T10:00": "Carnaval (terça-feira) (Resolução CMN 4.880/2020)",
		"2028-01-25T10:00": "Aniversário de São Paulo",
	} {
		instant, err := time.ParseInLocation("2006-01-02T15:04", at, unimed.Zone())
		mustDo(t, err)
		if got := unimed.Why(instant); got != want {
			t.Errorf("%s: %q, want %q", at, got, want)
		}
	}
	tiss := c.Policies["tiss-submission"]
	for _, name := range []string{"unimed-sp", "amil", "lisboa"} {
		if got := tiss.Destinations.Of(name).Calendar; got == nil || got != c.Destinations.Of(name).Calendar {
			t.Errorf("the policy knows another calendar of %s: %+v", name, got)
		}
	}
	tuesday := time.Date(2026, 3, 3, 12, 0, 0, 0, time.UTC)
	if own := c.Policies["failed-job"].Destinations.Of("").Calendar; own.Why(tuesday) != "outside mon" {
		t.Errorf("the policy's own: %q", own.Why(tuesday))
	}
	if c.Policies["whatsapp-message"].Destinations.Of("").Calendar != nil || Default().Policies["tiss-submission"].Destinations.Of("tiss").Calendar != nil {
		t.Error("a calendar that nobody gave")
	}
}
