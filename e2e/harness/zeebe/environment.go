package zeebe

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"retry-worker/e2e/harness"
)

// ports of one broker.
type ports struct{ gateway, command, internal, rest, management int }

func choosePorts() (ports, error) {
	p, err := harness.FreePorts(5)
	if err != nil {
		return ports{}, err
	}
	return ports{p[0], p[1], p[2], p[3], p[4]}, nil
}

// inherited settings of these names are not passed on: they may be meant for another Zeebe or Java.
var foreign = []string{"ZEEBE_", "CAMUNDA_", "SPRING_", "SERVER_", "MANAGEMENT_", "LOGGING_", "JAVA_OPTS=", "JAVACMD=", "JDK_JAVA_OPTIONS=", "CLASSPATH"}

// environment of the broker's process, from this process's.
func (b *Broker) environment(environ []string) []string {
	var env []string
	for _, pair := range environ {
		if !hasAnyPrefix(pair, foreign) {
			env = append(env, pair)
		}
	}
	return append(append(env, b.settings()...), b.options.Env...)
}

func hasAnyPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

func (b *Broker) settings() []string {
	const loopback = "127.0.0.1"
	return []string{
		"JAVACMD=" + b.java,
		// The first compiler only: it starts in half the time, and tests are short.
		"JAVA_OPTS=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -Xmx" + cmp.Or(b.options.Heap, "512m"),
		// Here, and not in JAVA_OPTS, a path may have spaces.
		fmt.Sprintf(`JDK_JAVA_OPTIONS="-Djava.io.tmpdir=%s" "-Dlog4j2.configurationFile=%s"`, b.dir.temporary(), b.dir.logging()),
		"LOGGING_CONFIG=" + b.dir.logging(),
		"ZEEBE_BROKER_NETWORK_HOST=" + loopback,
		"ZEEBE_BROKER_NETWORK_COMMANDAPI_PORT=" + strconv.Itoa(b.ports.command),
		"ZEEBE_BROKER_NETWORK_INTERNALAPI_PORT=" + strconv.Itoa(b.ports.internal),
		"ZEEBE_BROKER_GATEWAY_NETWORK_HOST=" + loopback,
		"ZEEBE_BROKER_GATEWAY_NETWORK_PORT=" + strconv.Itoa(b.ports.gateway),
		"SERVER_ADDRESS=" + loopback,
		"SERVER_PORT=" + strconv.Itoa(b.ports.rest),
		"MANAGEMENT_SERVER_ADDRESS=" + loopback,
		"MANAGEMENT_SERVER_PORT=" + strconv.Itoa(b.ports.management),
		"ZEEBE_BROKER_DATA_DIRECTORY=" + b.dir.data(),
		"ZEEBE_BROKER_DATA_LOGSEGMENTSIZE=16MB",
		"ZEEBE_BROKER_DATA_DISK_FREESPACE_PROCESSING=1GB",
		"ZEEBE_BROKER_DATA_DISK_FREESPACE_REPLICATION=500MB",
		"ZEEBE_CLOCK_CONTROLLED=true",
	}
}
