package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"

	"github.com/bcsnet/bcsnet/hack/build"
)

// writeSBOM writes, as SPDX, which modules the programs of an image are built from, as the programs themselves say.
func writeSBOM(out string, i image, s build.Source, p platformImage, files []file) error {
	digest, err := p.Digest()
	if err != nil {
		return err
	}
	d := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      i.name + "_linux_" + p.arch,
		DocumentNamespace: home + "/spdx/" + i.name + "/" + digest.Hex,
		CreationInfo: &spdx.CreationInfo{
			Created:  s.Created.Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "bcsnet-hack-image"}},
		},
	}
	root := component("image-"+i.name, i.name, s.Version, "CONTAINER")
	root.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: digest.Hex}}
	root.PackageLicenseDeclared = "Apache-2.0"
	d.Packages = append(d.Packages, root)
	relate(d, "DOCUMENT", root.PackageSPDXIdentifier, common.TypeRelationshipDescribe)

	modules := map[string]*spdx.Package{}
	for _, f := range files {
		program, info, err := programOf(f, s.Version)
		if err != nil {
			return err
		}
		d.Packages = append(d.Packages, program)
		relate(d, root.PackageSPDXIdentifier, program.PackageSPDXIdentifier, common.TypeRelationshipContains)
		library := &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}
		for _, m := range append(info.Deps, library) {
			if m.Replace != nil {
				m = m.Replace
			}
			one := component("module-"+m.Path+"-"+m.Version, m.Path, m.Version, "LIBRARY")
			one.PackageExternalReferences = []*spdx.PackageExternalReference{{
				Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
				Locator: "pkg:golang/" + m.Path + "@" + m.Version,
			}}
			modules[string(one.PackageSPDXIdentifier)] = one
			relate(d, program.PackageSPDXIdentifier, one.PackageSPDXIdentifier, common.TypeRelationshipDependsOn)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(modules)) {
		d.Packages = append(d.Packages, modules[id])
	}
	var text bytes.Buffer
	if err := spdxjson.Write(d, &text, spdxjson.Indent("  ")); err != nil {
		return err
	}
	if err := os.WriteFile(out+".new", text.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(out+".new", out)
}

// programOf describes a program, and returns what it says it is built from.
func programOf(f file, version string) (*spdx.Package, *buildinfo.BuildInfo, error) {
	info, err := buildinfo.ReadFile(f.from)
	if err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile(f.from)
	if err != nil {
		return nil, nil, err
	}
	one := component("program-"+f.to, info.Path, version, "APPLICATION")
	one.PackageFileName = f.to
	one.PackageLicenseDeclared = "Apache-2.0"
	one.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: fmt.Sprintf("%x", sha256.Sum256(text))}}
	return one, info, nil
}

// component returns a package of an SBOM. Licenses of others are not guessed.
func component(id, name, version, purpose string) *spdx.Package {
	return &spdx.Package{
		PackageName: name, PackageVersion: version, PackageSPDXIdentifier: identifier(id),
		PackageDownloadLocation: "NOASSERTION", PackageLicenseConcluded: "NOASSERTION",
		PackageLicenseDeclared: "NOASSERTION", PackageCopyrightText: "NOASSERTION", PrimaryPackagePurpose: purpose,
	}
}

// identifier makes a name into one that SPDX takes: letters, digits, dots and hyphens.
func identifier(name string) common.ElementID {
	return common.ElementID(regexp.MustCompile(`[^A-Za-z0-9.-]+`).ReplaceAllString(name, "-"))
}

func relate(d *spdx.Document, from, to common.ElementID, how string) {
	d.Relationships = append(d.Relationships, &spdx.Relationship{
		RefA: common.MakeDocElementID("", string(from)), RefB: common.MakeDocElementID("", string(to)),
		Relationship: how,
	})
}
