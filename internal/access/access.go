// Package access finds out who sends a request and what they may do: roles, tokens in a file, and the gate before every
// HTTP handler.
package access

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/clock"
	"retry-worker/internal/web"
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

// Check returns a *Refusal unless the role of the identity in ctx allows the action, at least for some team.
func Check(ctx context.Context, action Action) error {
	id := From(ctx)
	switch {
	case id.Role.May(action):
		return nil
	case id.Role == "":
		return refuse(CodeLoginRequired)
	default:
		return refuse("forbidden_role", id.Name, id.Role, action, action.Least())
	}
}

// CheckTeam is Check for the team's dead letters. An empty team stands for all teams at once.
func CheckTeam(ctx context.Context, action Action, team string) error {
	id := From(ctx)
	err := Check(ctx, action)
	switch {
	case err != nil, id.May(action, team):
		return err
	case id.Teams == "":
		return refuse("forbidden_role.teamless", id.Name, id.Role, action)
	case id.Teams == NoTeam:
		return refuse("forbidden_team.teamless", id.Name, id.Role, action)
	case team == "":
		return refuse("forbidden_team.all", id.Name, action, id.Teams)
	default:
		return refuse("forbidden_team.other", id.Name, id.Teams, action, team)
	}
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

const (
	// An address may send perSecond requests each second in the long run, and burst at once. An open page asks every
	// two seconds: this is enough for a hospital behind one proxy and for a program that reads a list, and bounds one
	// that asks in a loop.
	perSecond = 500
	burst     = 2000
	// An account may make a change every perChange in the long run, and changesAtOnce at once.
	perChange     = 2 * time.Second
	changesAtOnce = 120
	// An address may send a wrong token every perGuess in the long run, and guessesAtOnce at once: enough for a person
	// with a bad copy of a token. A right token is never limited, so that guessing keeps nobody out.
	perGuess      = 30 * time.Second
	guessesAtOnce = 6
)

// limits lets each of many (addresses, accounts) do something burst times at once, and once per every in the long run.
// It is safe for concurrent use.
type limits[K comparable] struct {
	every time.Duration
	burst int

	mu sync.Mutex
	// recent and older hold when each may do burst at once again; older has those seen before recent began.
	recent, older map[K]time.Time
}

// mostRecent is how many recent holds. When it is full, it becomes older, and a new one begins.
const mostRecent = 4096

// wait returns how long one of them must wait first; if 0, it has counted one more.
func (l *limits[K]) wait(of K, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	full, known := l.recent[of]
	if !known {
		full = l.older[of]
		if l.recent == nil || len(l.recent) == mostRecent {
			l.recent, l.older = map[K]time.Time{}, l.recent
		}
	}
	if full.Before(now) {
		full = now
	}
	span := time.Duration(l.burst) * l.every
	if latest := now.Add(span); full.After(latest) { // the clock was set back
		full = latest
	}
	wait := max(0, full.Add(l.every).Sub(now)-span)
	if wait == 0 {
		full = full.Add(l.every)
	}
	l.recent[of] = full
	return wait
}

// Limited answers 429 to an address that sends too many requests. An IPv6 network of 64 bits counts as one address.
func (g *Gate) Limited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.asked.wait(web.Network(peer(r)), g.Now()) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		// An HTTP/2 client can ask thousands of times a second, and would do so if it were answered at once.
		clock.Machine{}.Rest(r.Context(), time.Second)
		g.Crowded(peer(r))
		secure(w.Header(), r)
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests from this address: wait a second", http.StatusTooManyRequests)
	})
}

// peer returns the address that a request comes from. web.Listen takes it from a header if a trusted proxy sends that.
func peer(r *http.Request) netip.Addr { return web.Address(r.RemoteAddr) }

// warn logs that a client at an address was not let in.
func (g *Gate) warn(from netip.Addr, event, message string, more ...zap.Field) {
	g.strangers.Warn(message, append(more, zap.String("event", event), zap.Stringer("from", from))...)
}

// Crowded logs that an address sends too many requests, or holds too many connections (web.Peers).
func (g *Gate) Crowded(from netip.Addr) {
	g.warn(from, "requests_limited", "an address sends too many requests, or holds too many connections")
}

func (g *Gate) providerFailed(err error) {
	g.strangers.Error("the OpenID provider cannot be reached; who is logged in stays so for 15 minutes at most, and "+
		"nobody else comes in by it", zap.String("event", "oidc_unavailable"), zap.Error(err))
}
