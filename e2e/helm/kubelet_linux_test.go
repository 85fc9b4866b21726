package helm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
)

// kubelet does with a rendered pod what Kubernetes would: puts the image's files, secrets and volumes together, and runs the
// container as the user, with the environment, and on the read-only root that the pod asks for. Of the restricted profile it
// leaves seccomp out, and of the image it takes the Dockerfile's word: /retry-worker is the entry point, /data a folder.
type kubelet struct {
	binary  string
	secrets map[string]map[string]string
	maps    map[string]map[string]string // ConfigMaps
	hosts   []string                     // names of 127.0.0.1
	network *network
}

// podContainer was put together, and can be run.
type podContainer struct {
	root     string
	env      []string
	args     []string
	writable []string // volumes, as paths inside
	user     string
	group    string
	network  *network
}

func (k *kubelet) prepare(t *testing.T, pod any) *podContainer {
	t.Helper()
	spec := at(pod, "containers", 0)
	c := &podContainer{
		root: t.TempDir(), network: k.network,
		user: text(pod, "securityContext", "runAsUser"), group: text(pod, "securityContext", "fsGroup"),
	}
	if at(spec, "securityContext", "readOnlyRootFilesystem") != true || c.user == "0" || c.user == "" {
		t.Fatalf("the pod asks for a root that can be written, or for no user: %v", spec)
	}
	k.unpackImage(t, c)
	for _, mount := range list(spec, "volumeMounts") {
		k.mount(t, c, pod, mount)
	}
	for _, variable := range list(spec, "env") {
		c.env = append(c.env, text(variable, "name")+"="+k.valueOf(t, variable))
	}
	for _, arg := range list(spec, "args") {
		c.args = append(c.args, fmt.Sprint(arg))
	}
	c.env = append(c.env, "HOSTNAME=pod-0", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin") // as container runtimes add
	return c
}

func (k *kubelet) unpackImage(t *testing.T, c *podContainer) {
	t.Helper()
	for path, content := range map[string][]byte{
		"retry-worker": []byte(testkit.Read(t, k.binary)), "etc/hosts": []byte("127.0.0.1 localhost " + strings.Join(k.hosts, " ") + "\n"), "etc/ssl/certs/ca-certificates.crt": nil,
	} {
		path = filepath.Join(c.root, path)
		testkit.Must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o755)))
	}
	testkit.Must(t, errors.Join(os.Mkdir(filepath.Join(c.root, "data"), 0o755), os.Chmod(c.root, 0o755)))
}

// valueOf a variable; a secret that is not there keeps the container from starting.
func (k *kubelet) valueOf(t *testing.T, variable any) string {
	t.Helper()
	ref := at(variable, "valueFrom", "secretKeyRef")
	if ref == nil {
		return text(variable, "value")
	}
	found, ok := k.secrets[text(ref, "name")][text(ref, "key")]
	if !ok {
		t.Fatalf("secret %s has no %s", text(ref, "name"), text(ref, "key"))
	}
	return found
}

func (k *kubelet) mount(t *testing.T, c *podContainer, pod, mount any) {
	t.Helper()
	path, name := filepath.Join(c.root, text(mount, "mountPath")), text(mount, "name")
	testkit.Must(t, os.MkdirAll(path, 0o755))
	i := slices.IndexFunc(list(pod, "volumes"), func(v any) bool { return text(v, "name") == name })
	volume := list(pod, "volumes")[i]
	switch {
	case at(volume, "secret") != nil:
		k.project(t, c, path, k.secrets[text(volume, "secret", "secretName")], at(volume, "secret"))
	case at(volume, "configMap") != nil:
		k.project(t, c, path, k.maps[text(volume, "configMap", "name")], at(volume, "configMap"))
	default: // a disk: the pod's group may write, and what it makes is the group's
		c.writable = append(c.writable, text(mount, "mountPath"))
		testkit.Must(t, errors.Join(os.Chown(path, 0, number(t, c.group)), os.Chmod(path, 0o775|fs.ModeSetgid)))
	}
}

// project lays keys down as Kubernetes does: files in a folder of their own, and links that a change swaps at once.
func (k *kubelet) project(t *testing.T, c *podContainer, path string, keys map[string]string, source any) {
	t.Helper()
	if keys == nil {
		t.Fatalf("%v was not found", source)
	}
	const version = "..2026_11_21_12_00_00"
	mode := fs.FileMode(number(t, text(source, "defaultMode"))) //nolint:gosec // a mode
	err := errors.Join(os.Mkdir(filepath.Join(path, version), 0o755), os.Symlink(version, filepath.Join(path, "..data")))
	for key, content := range keys {
		file := filepath.Join(path, version, key)
		err = errors.Join(err, os.WriteFile(file, []byte(content), mode), os.Chown(file, 0, number(t, c.group)), os.Chmod(file, mode),
			os.Symlink(filepath.Join("..data", key), filepath.Join(path, key)))
	}
	testkit.Must(t, err)
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	testkit.Must(t, err)
	return n
}

// jail mounts the root read-only, its volumes writable, proves it, and goes on with the rest of its arguments.
const jail = `root=$1; shift
mount --bind "$root" "$root" || exit 125
while [ "$1" != -- ]; do mount --bind "$root$1" "$root$1" || exit 125; shift; done
mount -o remount,ro,bind "$root" || exit 125
! touch "$root/proof" 2>/dev/null || exit 125
shift; exec "$@"`

// command runs the program inside; args replace the container's where there are any.
func (c *podContainer) command(t *testing.T, args ...string) harness.Command {
	t.Helper()
	if len(args) == 0 {
		args = c.args
	}
	whole := []string{"--net=" + c.network.path, tool(t, "unshare"), "-m", tool(t, "sh"), "-c", jail, "sh", c.root}
	whole = append(append(whole, c.writable...), "--", tool(t, "setpriv"), "--no-new-privs", tool(t, "env"), "-i")
	whole = append(append(whole, c.env...), tool(t, "chroot"), "--userspec="+c.user+":"+c.user, "--groups="+c.group, c.root, "/retry-worker")
	return harness.Command{Path: tool(t, "nsenter"), Args: append(whole, args...)}
}

func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	testkit.Must(t, err)
	return path
}

// files of the root, with what they are, but for the volumes'.
func (c *podContainer) files(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(c.root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside := strings.TrimPrefix(path, c.root)
		if slices.Contains(c.writable, inside) {
			return filepath.SkipDir
		}
		info, err := entry.Info()
		if err == nil {
			found = append(found, fmt.Sprint(inside, info.Mode(), info.Size()))
		}
		return err
	})
	testkit.Must(t, err)
	return found
}
