package decision

import "retry-worker/internal/classify"

// ErrorClassification and the rest are classify's, under the names that the business rules have for them. It is the value
// object of RN-BIL-005 §12.2.
type (
	ErrorClassification = classify.Class
	Reason              = classify.Reason
	Team                = classify.Team
)

// The classifications (R4).
const (
	Transient = classify.Transient
	Permanent = classify.Permanent
	Unknown   = classify.Unknown
)
