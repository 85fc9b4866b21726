// Package access finds out who sends a request and what they may do: roles, tokens in a file, and the gate before every
// HTTP handler.
package access

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Role says what an account may do. Each role includes the one before it. The empty role allows nothing.
type Role string

// The roles; permissions says what each may do.
const (
	Viewer   Role = "viewer"
	Operator Role = "operator"
	Admin    Role = "admin"
)

// roles lists them in ascending order.
var roles = []Role{Viewer, Operator, Admin}

// ParseRole returns the role of that name: viewer, operator or admin, in lower case.
func ParseRole(name string) (Role, error) {
	if slices.Contains(roles, Role(name)) {
		return Role(name), nil
	}
	return "", fmt.Errorf("%s, expected viewer, operator or admin", shown(name))
}

// Action is what somebody wants to do, in words that follow "may not".
type Action string

// The actions.
const (
	Read     Action = "read"
	Report   Action = "tell how a claim ended"
	Order    Action = "hold or release the claims of a destination" // which belongs to no team
	Review   Action = "retry or discard"                            // one dead letter, even at the limit
	Bulk     Action = "retry or discard many at once"
	Restart  Action = "begin the whole ladder again" // (fresh), for one or many
	Erase    Action = "erase a subject"              // LGPD
	Teach    Action = "teach what is done about a cause"
	Handover Action = "give away all that somebody has" // to another (R35)
)

// Anew returns Restart if the whole ladder begins again, and otherwise a.
func (a Action) Anew(fresh bool) Action {
	if fresh {
		return Restart
	}
	return a
}

// reach says whose dead letters a permission covers.
type reach int8

const (
	everybodys reach = iota // all teams', even for a token that is bound to some
	unbound                 // those of the token's teams; all teams' if it has none
	named                   // those of the token's teams; all teams' for an admin who has none
)

// permissions is the whole table of who may do what (R31).
var permissions = map[Action]struct {
	least Role
	reach reach
}{
	Read:     {Viewer, everybodys},
	Report:   {Operator, everybodys},
	Order:    {Operator, everybodys},
	Review:   {Operator, unbound},
	Bulk:     {Operator, named},
	Restart:  {Admin, unbound},
	Erase:    {Admin, everybodys},
	Teach:    {Admin, everybodys},
	Handover: {Admin, everybodys},
}

// May reports whether the role allows the action, at least for some team. No role allows an unknown action.
func (r Role) May(a Action) bool {
	p, known := permissions[a]
	return known && slices.Index(roles, r) >= slices.Index(roles, p.least)
}

// Least returns the lowest role that may do the action.
func (a Action) Least() Role { return permissions[a].least }

// Teams lists the teams that an account is bound to, as the tokens file has them: a,b. An empty list reaches all teams.
type Teams string

// NoTeam is the Teams of an account that reaches no team.
const NoTeam Teams = "-"

var teamsForm = regexp.MustCompile(`^[^\s,#"]{1,64}(,[^\s,#"]{1,64})*$`)

// ParseTeams reads a text such as faturamento,ti.
func ParseTeams(text string) (Teams, error) {
	if !teamsForm.MatchString(text) || strings.Contains(strings.ToLower(text), tokenPrefix) {
		return "", fmt.Errorf("%s, expected the catalogue's teams such as faturamento,ti, without blanks", shown(text))
	}
	return Teams(text), nil
}

// names reports whether the team is one of them.
func (t Teams) names(team string) bool {
	return slices.Contains(strings.Split(string(t), ","), team) && team != ""
}

// Identity is an account that sends requests.
type Identity struct {
	// Name is that of a token or a person, or local if there are no tokens; empty for nobody.
	Name  string
	Role  Role
	Teams Teams
}

// May reports whether id may do the action to the team's dead letters. An empty team stands for all teams at once.
func (id Identity) May(a Action, team string) bool {
	switch p := permissions[a]; {
	case !id.Role.May(a):
		return false
	case p.reach == everybodys, id.Teams == "" && (p.reach == unbound || id.Role == Admin):
		return true
	default:
		return id.Teams.names(team)
	}
}

var loginRequired = &Refusal{Status: http.StatusUnauthorized, Code: CodeLoginRequired,
	Message: "nobody is logged in; send `Authorization: Bearer TOKEN`, or log in at /login"}

// Check returns a *Refusal unless the role of the identity in ctx allows the action, at least for some team.
func Check(ctx context.Context, action Action) error {
	id := From(ctx)
	switch {
	case id.Role.May(action):
		return nil
	case id.Role == "":
		return loginRequired
	default:
		return &Refusal{Status: http.StatusForbidden, Code: CodeForbiddenRole,
			Message: fmt.Sprintf("%s is %s and may not %s, which needs the role %s", id.Name, id.Role, action,
				action.Least())}
	}
}

// CheckTeam is Check for the team's dead letters. An empty team stands for all teams at once.
func CheckTeam(ctx context.Context, action Action, team string) error {
	id := From(ctx)
	if err := Check(ctx, action); err != nil || id.May(action, team) {
		return err
	}
	code, message := CodeForbiddenTeam, ""
	switch {
	case id.Teams == "":
		code, message = CodeForbiddenRole, fmt.Sprintf("%s is %s of no team and may not %s, which needs the role admin, "+
			"or a token that names its teams", id.Name, id.Role, action)
	case id.Teams == NoTeam:
		message = fmt.Sprintf("%s is %s of no team and may not %s; ask an admin", id.Name, id.Role, action)
	case team == "":
		message = fmt.Sprintf("%s may %s of its own teams alone; name one of them in the filter: %s", id.Name, action, id.Teams)
	default:
		message = fmt.Sprintf("%s is bound to %s and may not %s for another team; ask somebody of %.60q, or an admin",
			id.Name, id.Teams, action, team)
	}
	return &Refusal{Status: http.StatusForbidden, Code: code, Message: message}
}

// localName is everybody's name if there are no tokens. No token can have it.
const localName = "local"

// everybody is the identity of all people on this machine if there are no tokens.
var everybody = Identity{Name: localName, Role: Admin}

type contextKey struct{}

// From returns the identity that Gate.Middleware put in ctx, or the zero Identity, which may do nothing.
func From(ctx context.Context) Identity { return askerIn(ctx).Identity }

// Within returns a ctx with the identity id, for work that no HTTP request began, and for tests.
func Within(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, contextKey{}, &asker{Identity: id})
}

func askerIn(ctx context.Context) *asker {
	if a, ok := ctx.Value(contextKey{}).(*asker); ok {
		return a
	}
	return &asker{}
}

// shown returns a text as messages quote it: on one line, cut if long, and never a token that is in the wrong place.
func shown(s string) string {
	const most = 60
	if s == "" {
		return "missing"
	}
	if strings.Contains(strings.ToLower(s), tokenPrefix) {
		return "a token (not shown)"
	}
	if len(s) > most {
		return fmt.Sprintf("%q…", s[:most])
	}
	return fmt.Sprintf("%q", s)
}
