package audit

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// columns are the table's columns in order; new ones go to the end. They are fields of a Record, and the events' times.
var columns = strings.Fields(`record kind timestamp tenant policy claimId submissionError errorClassification
	retryCount analysedRetryCount maxRetries shouldRetry backoffMinutes nextRetryTime retryReason executionTimeMs rule
	reason matchedRule outcome responsibleTeam deadLetterId attemptNumber revision episode jobKey elementInstanceKey
	processInstanceKey identity errorReceivedAt errorClassifiedAt retryCountCheckedAt backoffCalculatedAt
	retryDecidedAt nextAttemptScheduledAt body matchedText catalogue possiblyAccepted`)

// opensFormula matches where a spreadsheet may see the beginning of a formula: at the start of a cell, or after
// anything that a spreadsheet may take for a separator, also behind blanks and quotation marks.
var opensFormula = regexp.MustCompile(`(^|[;,\t|\r\n])([ "\x{a0}\x{feff}]*)([=+\-@＝＋－＠])`)

// Inert returns s with an apostrophe before anything that a spreadsheet may take for a formula. Texts from outside
// (errors, ids, names in a catalogue) may hold anything.
func Inert(s string) string {
	if s != "" && strings.IndexByte("\t\r\n", s[0]) >= 0 {
		s = "'" + s
	}
	return opensFormula.ReplaceAllString(s, "$1$2'$3")
}

// NewCSV returns a writer of RFC 4180 as Excel expects it in Brazil: with semicolons, and a byte order mark for UTF-8.
// A line "sep=;" would help Excel elsewhere, but make it ignore the byte order mark.
func NewCSV(w io.Writer) *csv.Writer {
	_, _ = io.WriteString(w, "\ufeff") // the next write returns the same error
	c := csv.NewWriter(w)
	c.Comma, c.UseCRLF = ';', true
	return c
}

// newTable writes a table's header to w and returns a function that writes a record as a row. Numbers have decimal
// commas, as Excel in Brazil groups thousands by points.
func newTable(w *bufio.Writer) func(*Record) error {
	to := NewCSV(w)
	_ = to.Write(columns)
	return func(r *Record) error {
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		from := json.NewDecoder(bytes.NewReader(text))
		from.UseNumber()
		values := map[string]any{}
		if err := from.Decode(&values); err != nil {
			return err
		}
		values["body"] = string(r.Body)
		if r.Analysis != nil {
			for _, e := range r.Events {
				values[eventNames[e.Number].column] = e.At
			}
		}
		row := make([]string, len(columns))
		for i, name := range columns {
			row[i] = cell(values[name])
		}
		return to.Write(row)
	}
}

func cell(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return Inert(v)
	case json.Number:
		return strings.Replace(v.String(), ".", ",", 1)
	default:
		return fmt.Sprint(v)
	}
}
