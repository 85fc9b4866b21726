package config_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/config"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
	"retry-worker/internal/testkit/tlstest"
	"retry-worker/internal/zeebe"
)

func load(t *testing.T) config.Settings {
	t.Helper()
	s, err := config.Load()
	testkit.Must(t, err)
	return s
}

const settingsFile = "testdata/settings.txt"

// assignment is one of a case's; a value with spaces, or nothing in it, is quoted as Go does.
var assignment = regexp.MustCompile(`([A-Z0-9_]+)=("(?:[^"\\]|\\.)*"|\S*)`)

func assignments(t *testing.T, line string) map[string]string {
	t.Helper()
	vars := make(map[string]string)
	for _, found := range assignment.FindAllStringSubmatch(line, -1) {
		value := found[2]
		if strings.HasPrefix(value, `"`) {
			var err error
			value, err = strconv.Unquote(value)
			testkit.Must(t, err)
		}
		vars[found[1]] = value
	}
	return vars
}

// private goes where testdata is a copy that only this user may read, as secrets must be, and returns where the cases are.
func private(t *testing.T) (cases string) {
	t.Helper()
	cases, err := filepath.Abs(settingsFile)
	testkit.Must(t, err)
	folder := t.TempDir()
	testkit.Must(t, os.CopyFS(filepath.Join(folder, "testdata"), os.DirFS("testdata")))
	t.Chdir(folder)
	files, err := filepath.Glob("testdata/*")
	testkit.Must(t, err)
	for _, file := range files {
		testkit.Must(t, os.Chmod(file, 0o600))
	}
	return cases
}

// TestSettings plays the cases of testdata/settings.txt, whose head says how to add one.
func TestSettings(t *testing.T) {
	settingsFile := private(t)
	testkit.Must(t, os.WriteFile("testdata/large", []byte(strings.Repeat("canary", 20_000)), 0o600))
	tlstest.NewAuthority(t).Issue(t, "testdata/mtls.pem", "testdata/mtls.key", "worker")
	// crypto/tls quotes the types of the blocks that it skips.
	testkit.Must(t, os.WriteFile("testdata/quoted.key", []byte("-----BEGIN canary-----\nAA==\n-----END canary-----\n"), 0o600))
	script := testkit.Read(t, settingsFile)
	testkit.Environment(t, nil)
	defaults := fields(load(t))
	var played strings.Builder
	for line := range strings.Lines(script) {
		switch {
		case strings.HasPrefix(line, "#"):
			played.WriteString(line)
		case line == "$\n":
			played.WriteString(line + differing(nil, defaults) + "\n")
		case strings.HasPrefix(line, "$"):
			t.Run(strings.TrimSpace(line), func(t *testing.T) {
				played.WriteString(line + outcome(t, assignments(t, line), defaults) + "\n")
			})
		}
	}
	golden.Check(t, settingsFile, played.String())
}

// outcome is how the settings of an environment differ from the defaults, or what is wrong with it: a line each, which
// shows no secret.
func outcome(t *testing.T, vars, defaults map[string]string) string {
	t.Helper()
	testkit.Environment(t, vars)
	s, err := config.Load()
	if err == nil {
		return differing(defaults, fields(s))
	}
	if strings.Contains(err.Error(), "canary") {
		t.Errorf("a secret stands in %q", err)
	}
	var lines strings.Builder
	for problem := range strings.SplitSeq(err.Error(), "\n") {
		lines.WriteString("! " + problem + "\n")
	}
	return lines.String()
}

func differing(defaults, got map[string]string) string {
	var lines strings.Builder
	names := maps.Clone(got)
	maps.Copy(names, defaults)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if value := got[name]; value != defaults[name] {
			lines.WriteString(strings.TrimSpace(name+": "+value) + "\n")
		}
	}
	return lines.String()
}

// fields of the settings that hold something, by their paths.
func fields(s config.Settings) map[string]string {
	host, _ := os.Hostname() // the worker has no more of it
	s.WorkerName = strings.ReplaceAll(s.WorkerName, host, "HOST")
	all := make(map[string]string)
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		text, says := v.Interface().(fmt.Stringer)
		switch {
		case v.IsZero() && v.Kind() != reflect.Bool && !says:
		case v.Kind() == reflect.Struct:
			if says {
				all[path] = text.String()
			}
			for i := range v.NumField() {
				walk(strings.TrimPrefix(path+"."+v.Type().Field(i).Name, "."), v.Field(i))
			}
		case v.Kind() == reflect.Pointer && !says:
			walk(path, v.Elem())
		default:
			all[path] = fmt.Sprint(v.Interface())
		}
	}
	walk("", reflect.ValueOf(s))
	return all
}

// TestEverySettingIsTried in testdata/settings.txt, and is as good as unset where it is empty.
func TestEverySettingIsTried(t *testing.T) {
	script := testkit.Read(t, settingsFile)
	testkit.Environment(t, nil)
	unset := load(t)
	for _, v := range config.Variables() {
		for _, name := range append(v.Also, v.Name) {
			if !strings.Contains(script, " "+name+"=") {
				t.Errorf("no case sets %s", name)
			}
			t.Setenv(name, "")
		}
	}
	if empty := load(t); !reflect.DeepEqual(empty, unset) {
		t.Errorf("set but empty it is\n%+v\nunset\n%+v", empty, unset)
	}
}

// TestSecretsThatOthersReach: no setting takes a secret from a file that others can read. Which of them name no secret,
// or one that is read later, stands here.
func TestSecretsThatOthersReach(t *testing.T) {
	exposed := testkit.File(t, "secret", []byte("postgres://a@b/c"))
	testkit.Must(t, os.Chmod(exposed, 0o644))
	later := []string{"RETRY_WORKER_AUTH_TOKENS_FILE", "RETRY_WORKER_TLS_KEY_FILE", "RETRY_WORKER_SMTP_PASSWORD_FILE"}
	open := []string{"RETRY_WORKER_TLS_CERT_FILE", "RETRY_WORKER_POLICIES_FILE", "RETRY_WORKER_SMTP_CA_FILE"}
	for _, v := range config.Variables() {
		if !strings.HasSuffix(v.Name, "_FILE") || slices.Contains(slices.Concat(later, open), v.Name) {
			continue
		}
		testkit.Environment(t, map[string]string{v.Name: exposed})
		want := fmt.Sprintf("%s is %q, expected a readable file", v.Name, exposed)
		if _, err := config.Load(); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "others can reach it: it has mode 0644") {
			t.Errorf("%s: got %v", v.Name, err)
		}
	}
}

// TestCommandsNeedTheirOwn: what a command does not read is not held against it, and what it does is.
func TestCommandsNeedTheirOwn(t *testing.T) {
	private(t)
	for _, tt := range []struct {
		needs, env string
		what       func(config.Settings) any
		want       any
		wrong      string
	}{
		{"RETRY_WORKER_HTTP_ADDR", "RETRY_WORKER_JOB_TIMEOUT=nonsense RETRY_WORKER_HTTP_ADDR=retry.example:80 ZEEBE_ADDRESS=nonsense",
			func(s config.Settings) any { return s.HTTPAddr }, "retry.example:80", ""},
		{"RETRY_WORKER_HTTP_ADDR", "RETRY_WORKER_HTTP_ADDR=nowhere", nil, nil, `RETRY_WORKER_HTTP_ADDR is "nowhere", expected host:port, such as 127.0.0.1:8095`},
		{"RETRY_WORKER_HTTP_ADDR", "RETRY_WORKER_HTTP_ADR=nowhere", nil, nil,
			"RETRY_WORKER_HTTP_ADR is set, expected one of the names that `retry-worker serve --help` lists; did you mean RETRY_WORKER_HTTP_ADDR?"},
		{strings.Join(config.OfEngine, " "), "RETRY_WORKER_OPS_ADDR=nonsense RETRY_WORKER_TENANT_IDS=a,b ZEEBE_ADDRESS=gateway:1 ZEEBE_INSECURE_CONNECTION=true",
			func(s config.Settings) any { return []any{s.Engine, s.TenantIDs} }, []any{
				zeebe.Options{Address: "gateway:1", Plaintext: true, KeepAlive: 45 * time.Second, Reason: "ZEEBE_REST_ADDRESS is not set"}, []string{"a", "b"}}, ""},
		{strings.Join(config.OfEngine, " "), "ZEEBE_KEEP_ALIVE=1 RETRY_WORKER_TENANT_IDS=,", nil, nil,
			"RETRY_WORKER_TENANT_IDS is \",\", expected names separated by single commas\nZEEBE_KEEP_ALIVE is \"1\", expected a whole number from 10000 to 2147483647"},
		{"RETRY_WORKER_DATABASE_URL", "RETRY_WORKER_DATABASE_URL_FILE=testdata/database ZEEBE_ADDRESS=nonsense",
			func(s config.Settings) any { return s.DatabaseURL }, "postgres://journal:canary@db/retries", ""},
	} {
		testkit.Environment(t, assignments(t, tt.env))
		s, err := config.Load(strings.Fields(tt.needs)...)
		switch {
		case tt.wrong != "" && (err == nil || err.Error() != tt.wrong):
			t.Errorf("%s by %s: got %v, want %s", tt.needs, tt.env, err, tt.wrong)
		case tt.wrong == "" && (err != nil || !reflect.DeepEqual(tt.what(s), tt.want)):
			t.Errorf("%s by %s: got %+v, %v; want %+v", tt.needs, tt.env, s, err, tt.want)
		}
	}
}

// TestAddressOfTheRESTAPI: with the path that documents of the API write, or without.
func TestAddressOfTheRESTAPI(t *testing.T) {
	for _, given := range []string{"http://gateway:1", "http://gateway:1/", "http://gateway:1/v2", "http://gateway:1/v2/"} {
		testkit.Environment(t, map[string]string{"ZEEBE_REST_ADDRESS": given})
		if s, err := config.Load(config.OfEngine...); err != nil || s.Engine.RESTAddress != "http://gateway:1" {
			t.Errorf("%s: %q, %v", given, s.Engine.RESTAddress, err)
		}
	}
}

// shipped matches NAME: value (YAML) and NAME=value (ENV). A broker's own ZEEBE_… are among them; the worker does not read
// those.
var shipped = regexp.MustCompile(`(?m)^(?:ENV )?\s*((?:RETRY_WORKER|ZEEBE|CAMUNDA)_[A-Z_]+)[:=]\s*"?([^"\s#]+)"?`)

func TestWhatIsShippedLoads(t *testing.T) {
	for _, file := range []string{"docker-compose.yml", "Dockerfile"} {
		vars := make(map[string]string)
		for _, found := range shipped.FindAllStringSubmatch(testkit.Read(t, filepath.Join("..", "..", file)), -1) {
			vars[found[1]] = found[2]
		}
		if len(vars) == 0 {
			t.Errorf("%s sets nothing that the worker reads; this test looks at the wrong place", file)
		}
		testkit.Environment(t, vars)
		load(t)
	}
}
