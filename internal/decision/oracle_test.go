package decision_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/decision"
)

// This file says what RESOLUTIONS says, in the plainest way and with nothing of the package's own
// code: the properties and the fuzz targets hold the package against it.

// The codes as RN-BIL-005 §2.1 and RN-BIL-004 §2.1 list them; the union of both (R3).
var (
	permanentCodes = []string{"INVALID_PATIENT_DATA", "INSURANCE_EXPIRED", "AUTHORIZATION_DENIED", "DUPLICATE_CLAIM", "INVALID_PROCEDURE_CODE"}
	transientCodes = []string{
		"TIMEOUT", "CONNECTION_ERROR", "SERVICE_UNAVAILABLE", "NETWORK_ERROR", "TEMPORARY_ERROR",
		"RATE_LIMIT", "SERVER_ERROR", "503", "504",
	}
)

var (
	outsideAZ09 = regexp.MustCompile(`[^A-Z0-9]+`)
	// A number of R3 with all that clings to it: digits, and digits behind one of . , -
	clinging = regexp.MustCompile(`[0-9]+([.,-][0-9]+)*`)
)

// oracleClass is R2, R3, R4 and of R25 the names of exceptions.
func oracleClass(text string) (class decision.ErrorClassification, code string) {
	normalised := outsideAZ09.ReplaceAllString(strings.ToUpper(text), "_")
	numbers := clinging.FindAllString(text, -1)
	holds := func(code string) bool {
		if strings.Trim(code, "0123456789") == "" {
			return slices.Contains(numbers, code)
		}
		return strings.Contains(normalised, code) || slices.Contains(permanentCodes, code) && isException(normalised, code)
	}
	for _, code := range permanentCodes {
		if holds(code) {
			return "PERMANENT", code
		}
	}
	for _, code := range transientCodes {
		if holds(code) {
			return "TRANSIENT", code
		}
	}
	return "UNKNOWN", ""
}

// isException reports whether a word of the text is the name of the code's exception, or the code in one word (R25).
func isException(normalised, code string) bool {
	name := strings.ReplaceAll(code, "_", "")
	return slices.ContainsFunc(strings.Split(normalised, "_"), func(word string) bool {
		return word == name || word == name+"EXCEPTION" || word == name+"ERROR" || word == name+"FAULT"
	})
}

// oracleMinutes is R5: the shortest and the longest backoff at a retryCount, in minutes.
func oracleMinutes(count int64) (least, most int64) {
	raw := big.NewRat(5, 1)
	for range min(count, 100) { // long after the cap
		raw.Mul(raw, big.NewRat(2, 1))
	}
	if raw.Cmp(big.NewRat(240, 1)) > 0 {
		raw = big.NewRat(240, 1)
	}
	minutes := func(percent int64) int64 {
		rounded := new(big.Rat).Mul(raw, big.NewRat(percent, 100)).FloatString(0)
		n, _ := strconv.ParseInt(rounded, 10, 64)
		return min(max(n, 5), 240)
	}
	return minutes(80), minutes(120)
}

// oracleBackoff is R5 for the draw of tiss-submission without salt (R6), as TestR06DrawOutlivesRelease pins it.
func oracleBackoff(id string, count int64) time.Duration {
	frame := func(s string) string { return string(binary.AppendUvarint(nil, uint64(len(s)))) + s }
	sum := sha256.Sum256(binary.AppendVarint([]byte(frame("tiss-submission")+frame("")+frame(id)), count))
	draw := new(big.Rat).SetFrac64(int64(binary.BigEndian.Uint64(sum[:8])>>11), 1<<53)
	percent := new(big.Rat).Add(big.NewRat(4, 5), draw.Mul(draw, big.NewRat(2, 5)))
	minutes, _ := strconv.ParseInt(percent.Mul(percent, big.NewRat(5<<count, 1)).FloatString(0), 10, 64)
	return time.Duration(max(minutes, 5)) * time.Minute
}

var jsonNumber = regexp.MustCompile(`^(-?)(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// oracleCount is R9 for a value that is there: a whole number from 0 up, as far as an int64 goes.
func oracleCount(v decision.Value) (int64, bool) {
	part := jsonNumber.FindStringSubmatch(string(v))
	if part == nil {
		return 0, false
	}
	if strings.Trim(part[2]+part[3], "0.") == "" {
		return 0, true // nothing but zeros, whatever the sign and the power
	}
	digits, point := part[2]+strings.TrimPrefix(part[3], "."), len(part[2])
	if part[4] != "" {
		power, err := strconv.Atoi(part[4][1:])
		if point += power; err != nil {
			return 0, false
		}
	}
	if part[1] != "" || point < 0 || point > 100_000 { // so many digits no mantissa here has
		return 0, false
	}
	digits += strings.Repeat("0", max(0, point-len(digits)))
	n, err := strconv.ParseInt("0"+digits[:point], 10, 64)
	return n, err == nil && strings.Trim(digits[point:], "0") == ""
}

// oracleText is the text a value holds; a value is JSON without white space around it.
func oracleText(v decision.Value) (string, bool) {
	if !strings.HasPrefix(string(v), `"`) || !strings.HasSuffix(string(v), `"`) {
		return "", false
	}
	var s string
	err := json.Unmarshal([]byte(v), &s)
	return s, err == nil
}

// visible is what is neither white space nor of no width (R11).
var visible = regexp.MustCompile(`[^\p{Cf}\pZ\t-\r\x{85}]`)

var instant = regexp.MustCompile(
	`^([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(\.[0-9]+)?)?((?:Z|[+-]([0-9]{2}):([0-9]{2}))(?:\[[A-Z0-9_+/-]{1,64}\])?)?$`)

// oracleInstant is R23: RFC 3339 (its T and Z in either case), the same without seconds, with a zone's name behind the
// offset, or without a zone (UTC). No leap seconds.
func oracleInstant(v decision.Value) (time.Time, bool) {
	s, ok := oracleText(v)
	part := instant.FindStringSubmatch(strings.ToUpper(s))
	if !ok || part == nil {
		return time.Time{}, false
	}
	n := func(i int) int { k, _ := strconv.Atoi(part[i]); return k }
	fraction := int64(0)
	for i, scale := 1, int64(100_000_000); i < len(part[7]) && scale > 0; i, scale = i+1, scale/10 {
		fraction += int64(part[7][i]-'0') * scale
	}
	t := time.Date(n(1), time.Month(n(2)), n(3), n(4), n(5), n(6), int(fraction), time.UTC)
	exists := t.Year() == n(1) && int(t.Month()) == n(2) && t.Day() == n(3) && t.Hour() == n(4) && t.Minute() == n(5) && t.Second() == n(6)
	if !exists || n(9) > 23 || n(10) > 59 {
		return time.Time{}, false
	}
	offset := time.Duration(n(9))*time.Hour + time.Duration(n(10))*time.Minute
	if strings.HasPrefix(part[8], "-") {
		offset = -offset
	}
	return t.Add(-offset), true
}

var claimID = regexp.MustCompile(`^CLM-.*-[0-9]+$`)
var controls = regexp.MustCompile(`[[:cntrl:]\x{80}-\x{9f}\p{Cf}\p{Zl}\p{Zp}]`)

// answer is what the oracle says of a failure under tiss-submission.
type answer struct {
	outcome   decision.Outcome
	id        string
	rejection decision.RejectionCode
	class     decision.ErrorClassification
	code      string
	count     int64
	reason    string
	first     time.Time
}

// oracle is R1 with all it refers to, for tiss-submission. at is cut to whole seconds (R7).
func oracle(v decision.Variables, past decision.Past, at time.Time) answer {
	given := func(x decision.Value) bool { return x != "" && x != "null" }
	id, ok := oracleText(v.ID)
	if !ok || len(id) > 512 || controls.MatchString(id) || !claimID.MatchString(id) {
		return answer{outcome: "REJECTED", rejection: "INVALID_CLAIM_ID"}
	}
	a := answer{id: id, count: past.Retries, first: at}
	if given(v.RetryCount) {
		if a.count, ok = oracleCount(v.RetryCount); !ok {
			return answer{outcome: "REJECTED", rejection: "INVALID_RETRY_COUNT"}
		}
	}
	if given(v.LastSubmissionTime) {
		last, ok := oracleInstant(v.LastSubmissionTime)
		if !ok {
			return answer{outcome: "REJECTED", rejection: "INVALID_LAST_SUBMISSION_TIME"}
		}
		if last.Before(a.first) && !last.IsZero() { // 0001-01-01T00:00:00Z is Go's "none"
			a.first = last
		}
	}
	if !past.FirstFailure.IsZero() && past.FirstFailure.Before(a.first) {
		a.first = past.FirstFailure
	}
	text, ok := oracleText(v.Error)
	if !ok || !visible.MatchString(text) {
		text = ""
	}
	a.class, a.code = oracleClass(text)
	return a.decided(text, at)
}

// decided is R1 from step 2 on, R8, and R20 with the backoff that R6 fixes.
func (a answer) decided(text string, at time.Time) answer {
	switch {
	case a.count >= 5:
		a.outcome, a.reason = "MAX_RETRIES_EXCEEDED", "Maximum of 5 retries reached"
	case text == "":
		return answer{outcome: "REJECTED", rejection: "INVALID_ERROR_MESSAGE"}
	case a.class == "PERMANENT":
		a.outcome, a.reason = "PERMANENT_ERROR", "Permanent error, not retried"
	case at.Add(oracleBackoff(a.id, a.count)).After(a.first.Add(48 * time.Hour)):
		a.outcome, a.reason = "MAX_RETRIES_EXCEEDED", "Time limit of 48h reached"
	default:
		a.outcome, a.count = "RETRY", a.count+1
		kind := map[decision.ErrorClassification]string{"TRANSIENT": "Transient", "UNKNOWN": "Unknown"}[a.class]
		a.reason = kind + " error, retry " + strconv.FormatInt(a.count, 10) + " of 5"
	}
	return a
}
