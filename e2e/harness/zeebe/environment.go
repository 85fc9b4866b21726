package zeebe

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ports of one broker.
type ports struct{ gateway, command, internal, rest, management int }

// foreign settings, by the beginning of their names, are not passed on: they may be meant for another Zeebe or Java.
var foreign = []string{"ZEEBE_", "CAMUNDA_", "SPRING_", "SERVER_", "MANAGEMENT_", "LOGGING_", "JAVA_OPTS=", "JAVACMD=", "JDK_JAVA_OPTIONS=", "CLASSPATH"}

// environment of the broker's process, from this process's.
func (b *Broker) environment(environ []string) []string {
	env := slices.DeleteFunc(environ, func(pair string) bool {
		return slices.ContainsFunc(foreign, func(prefix string) bool { return strings.HasPrefix(pair, prefix) })
	})
	const loopback = "127.0.0.1"
	logging := b.folder.Join("log4j2.xml")
	env = append(env,
		"JAVACMD="+b.java,
		// The first compiler only: it starts in half the time, and tests are short.
		"JAVA_OPTS=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -Xmx512m",
		// Here, and not in JAVA_OPTS, a path may have spaces.
		fmt.Sprintf(`JDK_JAVA_OPTIONS="-Djava.io.tmpdir=%s" "-Dlog4j2.configurationFile=%s" "%s"`, b.folder.Join("tmp"), logging, b.classes),
		"LOGGING_CONFIG="+logging,
		"ZEEBE_BROKER_NETWORK_HOST="+loopback,
		"ZEEBE_BROKER_NETWORK_COMMANDAPI_PORT="+strconv.Itoa(b.ports.command),
		"ZEEBE_BROKER_NETWORK_INTERNALAPI_PORT="+strconv.Itoa(b.ports.internal),
		"ZEEBE_BROKER_GATEWAY_NETWORK_HOST="+loopback,
		"ZEEBE_BROKER_GATEWAY_NETWORK_PORT="+strconv.Itoa(b.ports.gateway),
		"ZEEBE_BROKER_GATEWAY_CLUSTER_REQUESTTIMEOUT=30s", // a busy machine keeps a command waiting
		"SERVER_ADDRESS="+loopback,
		"SERVER_PORT="+strconv.Itoa(b.ports.rest),
		"MANAGEMENT_SERVER_ADDRESS="+loopback,
		"MANAGEMENT_SERVER_PORT="+strconv.Itoa(b.ports.management),
		"ZEEBE_BROKER_DATA_DIRECTORY="+b.folder.Join("data"),
		"ZEEBE_BROKER_DATA_LOGSEGMENTSIZE=16MB",
		"ZEEBE_BROKER_DATA_SNAPSHOTPERIOD=15m",
		"ZEEBE_BROKER_DATA_DISK_FREESPACE_PROCESSING=1GB",
		"ZEEBE_BROKER_DATA_DISK_FREESPACE_REPLICATION=500MB",
		"ZEEBE_CLOCK_CONTROLLED=true",
	)
	return append(env, b.options.Env...)
}
