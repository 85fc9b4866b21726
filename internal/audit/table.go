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

// columns of the table, in their order; new ones go to the end. They are named as in a Record, and the events' times.
var columns = strings.Fields(`record kind timestamp tenant policy claimId submissionError errorClassification
	retryCount analysedRetryCount maxRetries shouldRetry backoffMinutes nextRetryTime retryReason executionTimeMs rule
	reason matchedRule outcome responsibleTeam deadLetterId attemptNumber revision episode jobKey elementInstanceKey
	processInstanceKey identity errorReceivedAt errorClassifiedAt retryCountCheckedAt backoffCalculatedAt
	retryDecidedAt nextAttemptScheduledAt body matchedText catalogue possiblyAccepted`)

// eventColumns are the columns of the events' times.
var eventColumns = [...]string{
	errorReceived: "errorReceivedAt", errorClassified: "errorClassifiedAt", retryCountChecked: "retryCountCheckedAt",
	backoffCalculated: "backoffCalculatedAt", retryDecided: "retryDecidedAt",
	nextAttemptScheduled: "nextAttemptScheduledAt",
}

// opensFormula matches where a spreadsheet may see a formula begin: at the beginning of a cell, or behind whatever may
// separate cells where the file is opened, with blanks and quotation marks between them.
var opensFormula = regexp.MustCompile(`(^|[;,\t|\r\n])([ "\x{a0}\x{feff}]*)([=+\-@＝＋－＠])`)

// Inert returns s as no spreadsheet takes it, or a part of it, for a formula: an apostrophe stands before what would
// open one. What comes from outside (an error, an id, a name in a catalogue) may hold anything.
func Inert(s string) string {
	if s != "" && strings.IndexByte("\t\r\n", s[0]) >= 0 {
		s = "'" + s
	}
	return opensFormula.ReplaceAllString(s, "$1$2'$3")
}

// NewCSV returns what writes RFC 4180 as Excel opens it in Brazil: semicolons, and a byte order mark, which tells that
// it is UTF-8. A line "sep=;" would tell the separator to an Excel of elsewhere, and make it forget the byte order mark.
func NewCSV(w io.Writer) *csv.Writer {
	_, _ = io.WriteString(w, "\ufeff") // what is written next tells what went wrong
	c := csv.NewWriter(w)
	c.Comma, c.UseCRLF = ';', true
	return c
}

// newTable returns what writes records as the rows of a table, and writes its header: with decimal commas, as a point
// groups thousands there.
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
				values[eventColumns[e.Number]] = e.At
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
