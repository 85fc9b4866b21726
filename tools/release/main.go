// Command release describes a built binary to its users: a CycloneDX bill of materials, and the licences of
// everything in it with their texts. It fails if a licence is not allowed.
package main

import (
	"bytes"
	"debug/buildinfo"
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release: "+err.Error())
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	binary := flags.String("binary", "", "the built binary to describe")
	version := flags.String("version", "dev", "its version")
	date := flags.String("date", "", "its commit's date, RFC 3339")
	project := flags.String("project", ".", "the folder of the module it was built from")
	sbom := flags.String("sbom", "", "write the bill of materials here")
	licences := flags.String("licences", "", "write the licences here")
	if err := flags.Parse(args); err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(*binary)
	if err != nil {
		return fmt.Errorf("read what %s was built from: %w", *binary, err)
	}
	at, err := time.Parse(time.RFC3339, *date)
	if err != nil {
		return fmt.Errorf("--date is %q, expected RFC 3339 such as 2026-11-21T12:00:00Z", *date)
	}
	own := part{Path: info.Main.Path, Version: *version}
	parts, err := partsOf(info, *project, &own)
	if err != nil {
		return err
	}
	var bill bytes.Buffer
	if err := writeBill(&bill, &own, parts, info, at); err != nil {
		return fmt.Errorf("write the bill of materials: %w", err)
	}
	if err := os.WriteFile(*sbom, bill.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(*licences, notices(append([]part{own}, parts...)), 0o644)
}
