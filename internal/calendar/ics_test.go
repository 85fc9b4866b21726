package calendar_test

import (
	"strings"
	"testing"
	"time"

	"retry-worker/internal/calendar"
)

// icsFile returns a file with one event of these lines, of which DTSTART is line 3.
func icsFile(lines string) string {
	return "BEGIN:VCALENDAR\nBEGIN:VEVENT\n" + lines + "\nEND:VEVENT\nEND:VCALENDAR\n"
}

// TestReadICS: what says when an event is, is applied, whichever program wrote it.
func TestReadICS(t *testing.T) {
	for lines, want := range map[string]string{
		"DTSTART;VALUE=DATE:20260125":                                            "20260125",
		"dtstart;value=date:20260125\nsummary:x\nrrule:freq=yearly":              "20260125 20270125 20280125",
		"DTSTART:20260125\r\nDTEND:20260127\r":                                   "20260125 20260126",
		"DTSTART:20260125\nSUMMARY:Recesso\n  do portal\nDTEND:20260128":         "20260125 20260126 20260127",
		"DTSTART:20260125\nRRULE:FREQ=YEARLY;INTERVAL=1;WKST=MO":                 "20260125 20270125 20280125",
		"DTSTART:20260125\nRRULE:FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=25":            "20260125 20270125 20280125",
		"RRULE:FREQ=YEARLY;BYMONTHDAY=25;BYMONTH=1\nDTSTART:20260125":            "20260125 20270125 20280125",
		"DTSTART:20240229\nRRULE:FREQ=YEARLY":                                    "20240229 20280229",
		"DTSTART:19700907\nRRULE:FREQ=YEARLY":                                    "20240907 20250907 20260907 20270907 20280907",
		"DTSTART:18221231\nDTEND:18230102\nRRULE:FREQ=YEARLY":                    "20240101 20241231 20250101 20251231 20260101 20261231 20270101 20271231 20280101 20281231",
		"DTSTART:18220907\nDTEND:18220908":                                       "",
		"DTSTART:20260125\nBEGIN:VALARM\nTRIGGER:P1D\nDURATION:PT1H\nEND:VALARM": "20260125",
		"DTSTART:20260125\nSTATUS:cancelled":                                     "-20260125",
	} {
		added, cancelled, err := calendar.ReadICS(icsFile(lines))
		var got []string
		for _, h := range added {
			if year := h.Day.Time().Year(); year >= 2024 && year <= 2028 {
				got = append(got, h.Day.Time().Format("20060102"))
			}
		}
		for _, h := range cancelled {
			got = append(got, "-"+h.Day.Time().Format("20060102"))
		}
		if all := strings.Join(got, " "); all != want || err != nil {
			t.Errorf("%q: %s, %v, want %s", lines, all, err, want)
		}
	}
}

// TestReadICSRefuses: what is not understood is told with its line, never passed over.
func TestReadICSRefuses(t *testing.T) {
	for content, want := range map[string]string{
		icsFile("DTSTART:20260125\nRRULE:FREQ=WEEKLY"):                                          "line 4: ",
		icsFile("DTSTART:20260125\nRRULE:FREQ=YEARLY;INTERVAL=2"):                               "line 4: ",
		icsFile("DTSTART:20260125\nRRULE:FREQ=YEARLY;COUNT=3"):                                  "line 4: ",
		icsFile("RRULE:FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=1\nDTSTART:20260125"):                   "line 4: ",
		icsFile("DTSTART:20260125\nSUMMARY:a\n b\nRECURRENCE-ID:20270125"):                      "line 6: ",
		icsFile("DTSTART:20260125T080000Z"):                                                     "line 3: ",
		icsFile("DTSTART:20260125\nEXDATE:20260125"):                                            "line 4: ",
		icsFile("DTSTART:20260125\nRDATE;VALUE=PERIOD:20260301/P1D"):                            "line 4: ",
		icsFile("DTSTART:20260125\nDURATION:P1D"):                                               "line 4: ",
		icsFile("DTSTART:20260125\nDTEND:20260125"):                                             "line 5: ",
		icsFile("DTSTART:20260125\nDTEND:20280125"):                                             "line 5: ",
		icsFile("SUMMARY:x"):                                                                    "line 4: ",
		icsFile("DTSTART:20260125\nfree text"):                                                  "line 4: ",
		"BEGIN:VCALENDAR\nEND:VCALENDAR":                                                        "no event",
		"BEGIN:VEVENT\nDTSTART:20260125":                                                        "no event",
		"data;feriado\n2026-01-25;x":                                                            "line 1: ",
		"":                                                                                      "no event",
		strings.Repeat("BEGIN:VEVENT\nDTSTART:20260125\nRRULE:FREQ=YEARLY\nEND:VEVENT\n", 8334): "line 33336: ",
	} {
		if added, cancelled, err := calendar.ReadICS(content); err == nil || !strings.Contains(err.Error(), want) || added != nil || cancelled != nil {
			t.Errorf("%.80q: %v, want %q", content, err, want)
		}
	}
}

func FuzzReadICS(f *testing.F) {
	f.Add(icsFile("DTSTART;VALUE=DATE:20260125\nRRULE:FREQ=YEARLY\nEXDATE:20270125\nSUMMARY:a"))
	f.Fuzz(func(t *testing.T, content string) {
		start := time.Now()
		if added, cancelled, err := calendar.ReadICS(content); err != nil && len(added)+len(cancelled) > 0 {
			t.Errorf("%d days beside %v", len(added)+len(cancelled), err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
