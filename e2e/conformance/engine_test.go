package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"retry-worker/e2e/harness"
	development "retry-worker/e2e/harness/engine"
	"retry-worker/internal/testkit"
)

const (
	// playTime bounds a row, startTime the start of an engine, stopTime its end in order.
	playTime  = time.Minute
	startTime = 8 * time.Minute
	stopTime  = 15 * time.Second
)

// engine under test.
type engine struct {
	name  string
	doors []door
	// control is the base of the actuator's addresses; empty where there is none.
	control string
	clock   bool // it can be moved
	own     bool // the development engine

	mu        sync.Mutex
	incidents map[int64][]incident // by process instance
	lost      error                // why the records are read no more
}

// enginesUnderTest starts or reaches what ENGINE_UNDER_TEST names.
func enginesUnderTest(t *testing.T) []*engine {
	t.Helper()
	named := os.Getenv("ENGINE_UNDER_TEST")
	kind, where, _ := strings.Cut(named, ":")
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	switch {
	case named == "":
		return []*engine{startOwn(t, "8.6", rest86), startOwn(t, "8.8", onGRPC|rest88)}
	case kind == "folder":
		return []*engine{startForeign(ctx, t, named, func(p []int) harness.Command { return distribution(t, where, p) })}
	case kind == "docker":
		return []*engine{startForeign(ctx, t, named, func(p []int) harness.Command { return container(where, p) })}
	case kind == "grpc":
		e := &engine{name: named, doors: []door{dial(t, strings.TrimPrefix(where, "//"))}}
		testkit.Must(t, e.await(ctx))
		return []*engine{e}
	case kind == "http", kind == "https":
		address, err := url.Parse(named)
		testkit.Must(t, err)
		e := &engine{name: address.Redacted()}
		testkit.Must(t, e.addREST(ctx, named))
		return []*engine{e}
	}
	t.Fatalf("ENGINE_UNDER_TEST is %q, expected nothing, folder:/path, docker:image, grpc://host:port or https://host/",
		named)
	return nil
}

// startOwn starts the development engine in a shape, and gives it those doors.
func startOwn(t *testing.T, shape string, kinds doors, flags ...string) *engine {
	t.Helper()
	ours, err := development.Start(t.Context(), append([]string{"--shape", shape}, flags...)...)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, ours.Stop(context.Background())) })
	e := &engine{name: "the development engine as " + shape, own: true, clock: true, control: ours.ControlURL()}
	e.follow(t, ours)
	if kinds&onGRPC != 0 {
		e.doors = append(e.doors, dial(t, ours.GatewayAddress()))
	}
	for kind := range slices.Values([]doors{rest86, rest88}) {
		if kinds&kind != 0 {
			e.doors = append(e.doors, &restDoor{base: ours.RESTAddress(), is: kind})
		}
	}
	return e
}

// startForeign starts an engine that is not ours. The command is given the ports of its gateway, its REST API and its
// actuator, and two to use within.
func startForeign(ctx context.Context, t *testing.T, name string, command func(ports []int) harness.Command) *engine {
	t.Helper()
	e := &engine{name: name}
	ports, err := harness.Ports(5)
	testkit.Must(t, err)
	p, err := harness.Start(command(ports))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = p.Stop(context.Background(), stopTime) })
	e.doors, e.control = []door{dial(t, testkit.Loopback(ports[0]))}, "http://"+testkit.Loopback(ports[2])
	if err := e.await(ctx); err != nil {
		t.Fatalf("start %s: %v; it said last: %s", name, err, p.LastLine())
	}
	// An engine of 8.5 has no such API.
	if err := e.addREST(ctx, "http://"+testkit.Loopback(ports[1])); err != nil {
		t.Logf("%s is reached over gRPC only: %v", name, err)
	}
	_, err = e.moveClock(ctx, time.Millisecond)
	e.clock = err == nil
	return e
}

// distribution starts a folder's bin/broker, with data of its own.
func distribution(t *testing.T, home string, ports []int) harness.Command {
	t.Helper()
	folder, err := harness.NewFolder("conformance")
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, folder.Remove()) })
	const loopback = "127.0.0.1"
	env := slices.DeleteFunc(os.Environ(), func(pair string) bool { // those may be meant for another engine
		return slices.ContainsFunc([]string{"ZEEBE_", "CAMUNDA_", "SPRING_", "SERVER_", "MANAGEMENT_"},
			func(prefix string) bool { return strings.HasPrefix(pair, prefix) })
	})
	port := func(i int) string { return fmt.Sprint(ports[i]) }
	env = append(env,
		"ZEEBE_BROKER_NETWORK_HOST="+loopback,
		"ZEEBE_BROKER_NETWORK_COMMANDAPI_PORT="+port(3),
		"ZEEBE_BROKER_NETWORK_INTERNALAPI_PORT="+port(4),
		"ZEEBE_BROKER_GATEWAY_NETWORK_HOST="+loopback,
		"ZEEBE_BROKER_GATEWAY_NETWORK_PORT="+port(0),
		"ZEEBE_BROKER_GATEWAY_CLUSTER_REQUESTTIMEOUT=30s",
		"SERVER_ADDRESS="+loopback, "SERVER_PORT="+port(1),
		"MANAGEMENT_SERVER_ADDRESS="+loopback, "MANAGEMENT_SERVER_PORT="+port(2),
		"ZEEBE_BROKER_DATA_DIRECTORY="+folder.Join("data"),
		"ZEEBE_BROKER_DATA_DISK_FREESPACE_PROCESSING=1GB", "ZEEBE_BROKER_DATA_DISK_FREESPACE_REPLICATION=500MB",
		"ZEEBE_CLOCK_CONTROLLED=true",
	)
	return harness.Command{Path: filepath.Join(home, "bin", "broker"), Env: env, Dir: folder.Path}
}

// container starts an image as a broker alone, without authentication.
func container(image string, ports []int) harness.Command {
	args := []string{"run", "--rm"}
	for i, inside := range []string{"26500", "8080", "9600"} {
		args = append(args, "-p", testkit.Loopback(ports[i])+":"+inside)
	}
	for _, pair := range []string{
		"SPRING_PROFILES_ACTIVE=broker", "CAMUNDA_DATA_SECONDARYSTORAGE_TYPE=none", "ZEEBE_CLOCK_CONTROLLED=true",
		"CAMUNDA_SECURITY_AUTHENTICATION_UNPROTECTEDAPI=true", "CAMUNDA_SECURITY_AUTHORIZATIONS_ENABLED=false",
	} {
		args = append(args, "-e", pair)
	}
	return harness.Command{Path: "docker", Args: append(args, image)}
}

// dial returns the gRPC door at an address. It takes messages of the size that a client takes by default.
func dial(t *testing.T, address string) *grpcDoor {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &grpcDoor{client: pb.NewGatewayClient(conn)}
}

// await waits until the engine's gateway knows the leader of a partition.
func (e *engine) await(ctx context.Context) error {
	client := e.doors[0].(*grpcDoor).client
	for {
		topology, err := client.Topology(ctx, &pb.TopologyRequest{}, grpc.WaitForReady(true))
		for _, broker := range topology.GetBrokers() {
			for _, p := range broker.GetPartitions() {
				if p.GetRole() == pb.Partition_LEADER && p.GetHealth() == pb.Partition_HEALTHY {
					return nil
				}
			}
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return errors.Join(errors.New("its topology never names a leader"), err)
		}
	}
}

// addREST gives the engine the REST door below an address, in the shape of the version that it says.
func (e *engine) addREST(ctx context.Context, base string) error {
	d := &restDoor{base: strings.TrimRight(base, "/"), is: rest88, token: os.Getenv("ENGINE_UNDER_TEST_TOKEN")}
	var topology struct{ GatewayVersion string }
	d.ctx = ctx
	if err := d.call(http.MethodGet, "topology", nil, &topology); err != nil {
		return err
	}
	if strings.HasPrefix(topology.GatewayVersion, "8.6.") {
		d.is = rest86
	}
	e.doors = append(e.doors, d)
	return nil
}

// missing says why the engine cannot play a row; empty where it can.
func (e *engine) missing(r *row) string {
	switch {
	case r.from == own && !e.own:
		return "only the development engine promises it"
	case r.needs&clock != 0 && !e.clock:
		return "it has no clock that can be moved"
	case r.needs&records != 0 && !e.own:
		return "its records cannot be read from here"
	case r.needs&control != 0 && e.control == "":
		return "its counters cannot be read from here"
	}
	return ""
}

// nameLeftOut prints the rows that were not played on the engine.
func (e *engine) nameLeftOut() {
	say := func(what, why string) { harness.Say(fmt.Sprintf("left out on %s: %s: %s", e.name, what, why)) }
	for i := range table {
		row, why := &table[i], e.missing(&table[i])
		if why == "" && !e.own && !slices.ContainsFunc(e.doors, row.through) {
			why = "it has no such door"
		}
		if why != "" {
			say(row.name, why)
		}
	}
	if !e.own {
		say("the types of incidents in rows that were played", "its records cannot be read from here")
	}
}

// moveClock moves the engine's clock forward and returns its time.
func (e *engine) moveClock(ctx context.Context, by time.Duration) (time.Time, error) {
	request := fmt.Appendf(nil, `{"offsetMilli":%d}`, by.Milliseconds())
	var answer struct{ EpochMilli int64 }
	err := send(ctx, http.MethodPost, e.control+"/actuator/clock/add", "", "application/json", request, &answer)
	return time.UnixMilli(answer.EpochMilli), err
}

// incident as a record tells it.
type incident struct {
	key                                int64
	ErrorType, ErrorMessage, ElementID string
	ProcessInstanceKey, JobKey         int64
}

// follow reads the engine's records until the test ends, and keeps the incidents.
func (e *engine) follow(t *testing.T, ours *development.Engine) {
	ctx, cancel := context.WithCancel(t.Context())
	e.incidents = make(map[int64][]incident)
	var reading sync.WaitGroup
	reading.Go(func() {
		var wrong error
		err := ours.Follow(ctx, func(line []byte) { wrong = errors.Join(wrong, e.take(line)) })
		e.mu.Lock()
		defer e.mu.Unlock()
		e.lost = errors.Join(wrong, err)
	})
	t.Cleanup(func() {
		cancel()
		reading.Wait()
	})
}

func (e *engine) take(line []byte) error {
	var record struct {
		Key               int64
		ValueType, Intent string
		Value             json.RawMessage
	}
	if err := json.Unmarshal(line, &record); err != nil || record.ValueType != "INCIDENT" || record.Intent != "CREATED" {
		return err
	}
	i := incident{key: record.Key}
	err := json.Unmarshal(record.Value, &i)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.incidents[i.ProcessInstanceKey] = append(e.incidents[i.ProcessInstanceKey], i)
	return err
}
