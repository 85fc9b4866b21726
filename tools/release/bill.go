package main

import (
	"debug/buildinfo"
	"io"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// writeBill writes the bill of materials. The same binary, version and date give the same bytes.
func writeBill(w io.Writer, own *part, parts []part, info *buildinfo.BuildInfo, at time.Time) error {
	product := component(own)
	product.Type = cdx.ComponentTypeApplication
	bill := cdx.NewBOM()
	name := product.PackageURL
	var all []cdx.Component
	var refs []string
	for i := range parts {
		c := component(&parts[i])
		all, refs, name = append(all, c), append(refs, c.BOMRef), name+" "+c.PackageURL+parts[i].Sum
	}
	var settings []cdx.Property
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "CGO_ENABLED" {
			settings = append(settings, cdx.Property{Name: "build:" + s.Key, Value: s.Value})
			name += " " + s.Value
		}
	}
	product.Properties = &settings
	bill.SerialNumber = "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceURL, []byte(name+at.UTC().Format(time.RFC3339))).String()
	bill.Metadata = &cdx.Metadata{Timestamp: at.UTC().Format(time.RFC3339), Component: &product}
	bill.Components = &all
	bill.Dependencies = &[]cdx.Dependency{{Ref: product.BOMRef, Dependencies: &refs}}
	encoder := cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	return encoder.EncodeVersion(bill, cdx.SpecVersion1_6)
}

func component(p *part) cdx.Component {
	url := "pkg:golang/" + p.Path + "@" + p.Version
	c := cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: p.Path, Version: p.Version, PackageURL: url}
	licences := cdx.Licenses{}
	if len(p.Licences) == 1 {
		licences = append(licences, cdx.LicenseChoice{License: &cdx.License{ID: p.Licences[0]}})
	} else {
		licences = append(licences, cdx.LicenseChoice{Expression: strings.Join(p.Licences, " AND ")})
	}
	c.Licenses = &licences
	if p.Sum != "" { // the hash of the module's zip in go.sum: not a plain digest
		c.Properties = &[]cdx.Property{{Name: "go:sum", Value: p.Sum}}
	}
	return c
}
